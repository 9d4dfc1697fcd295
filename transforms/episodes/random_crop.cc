// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/random_crop.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/element_copies.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;

constexpr absl::string_view kForward = "RandomCropTensorDict::Forward";
constexpr absl::string_view kBatches = "batches";

// A batch as [outer, steps, inner]: a line for each (outer, inner), whose
// number is outer * lines.inner + inner. Its steps lie lines.inner rows apart.
struct Lines {
  int64_t outer = 1;
  int64_t steps = 0;
  int64_t inner = 1;
  int64_t count() const { return outer * inner; }
  int64_t rows() const { return count() * steps; }
};

// The same rows of each leaf: of the host at once, of a device all in one
// gather.
class LeafGather {
 public:
  // `rows`, of `table_rows`, outlive this.
  LeafGather(int64_t table_rows, absl::Span<const int64_t> rows,
             DeviceWork* work)
      : table_rows_(table_rows), rows_(rows), call_(work) {}

  // A tensor of this shape, with the rows of `leaf` behind Run.
  absl::StatusOr<Tensor> Add(const Tensor& leaf, const Shape& shape) {
    if (!leaf.is_host()) return AddOnDevice(leaf, shape);
    RILL_ASSIGN_OR_RETURN(const Tensor from, leaf.Contiguous());
    RILL_ASSIGN_OR_RETURN(Tensor to, Tensor::Empty(leaf.dtype(), shape));
    const RowColumn column = ColumnOf(from, to);
    if (column.width > 0) {
      GatherRowsOnHost(absl::MakeConstSpan(&column, 1), rows_);
    }
    return to;
  }

  absl::Status Run() {
    if (!copies_.has_value()) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(copies_->Launch()) << kForward;
    const Stream& stream = call_.stream();
    if (!columns_.empty()) {
      RILL_RETURN_IF_ERROR(stream.backend()->GatherRows(
          stream.device().index, columns_, rows_, stream.handle()))
          << kForward;
    }
    return call_.End();
  }

 private:
  RowColumn ColumnOf(const Tensor& from, const Tensor& to) const {
    const int64_t width = from.size_bytes() / table_rows_;
    return {.table = from.raw_data(),
            .table_stride = width,
            .batch = to.raw_data(),
            .batch_stride = width,
            .width = width};
  }

  absl::StatusOr<Tensor> AddOnDevice(const Tensor& leaf, const Shape& shape) {
    if (!copies_.has_value()) {
      RILL_RETURN_IF_ERROR(call_.Begin(leaf.device())) << kForward;
      copies_.emplace(&call_.stream());
    }
    if (leaf.device() != call_.stream().device()) {
      return FailedPrecondition(kForward, ": lies on ",
                                leaf.device().ToString(), ", want ",
                                call_.stream().device().ToString(),
                                " as the leaves before it; put ToDevice before "
                                "this");
    }
    call_.Keep(leaf);
    Tensor from = leaf;
    if (!leaf.is_contiguous()) {
      RILL_ASSIGN_OR_RETURN(from, call_.Take(leaf.dtype(), leaf.shape()));
      RILL_RETURN_IF_ERROR(copies_->Add(leaf, from)) << kForward;
    }
    RILL_ASSIGN_OR_RETURN(Tensor to, call_.Take(leaf.dtype(), shape));
    const RowColumn column = ColumnOf(from, to);
    if (column.width > 0) columns_.push_back(column);
    return to;
  }

  const int64_t table_rows_;
  const absl::Span<const int64_t> rows_;
  DeviceWork::Call call_;
  // Copies of leaves with gaps. None before the first leaf on a device.
  std::optional<transforms_internal::ElementCopies> copies_;
  std::vector<RowColumn> columns_;  // Of the device.
};

class RandomCrop final : public BatchTransform {
 public:
  explicit RandomCrop(const RandomCropTensorDict::Options& options)
      : options_(options), rng_(options.seed, RngStream::kTransform) {}

  absl::string_view name() const override { return "RandomCropTensorDict"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("sub_seq_len", options_.sub_seq_len)
        .Int("sample_dim", options_.sample_dim)
        .Text("mask_key", options_.mask_key)
        .Unsigned("seed", options_.seed);
  }

  bool is_stateful() const override { return true; }
  absl::StatusOr<TensorDict> InitialState() const override {
    return StateOf(0);
  }

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor number, state->Get(kBatches));
    RILL_ASSIGN_OR_RETURN(const int64_t batches, number.Item<int64_t>());
    RILL_ASSIGN_OR_RETURN(const int dim, FindDim(batch->batch_shape()));
    if (batch->batch_shape().num_elements() > 0) {
      RILL_RETURN_IF_ERROR(Crop(dim, static_cast<uint64_t>(batches), batch));
    }
    // Also for an empty batch: the state counts calls, and a crop depends on
    // the number of its call alone.
    RILL_ASSIGN_OR_RETURN(*state, StateOf(batches + 1));
    return absl::OkStatus();
  }

  // Sizes of batches are in no spec.
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    constexpr absl::string_view kCaller = "RandomCropTensorDict::ForwardSpec";
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlagIfAny(
        kCaller, options_.mask_key, spec));
    return spec;
  }

 private:
  static absl::StatusOr<TensorDict> StateOf(int64_t batches) {
    RILL_ASSIGN_OR_RETURN(Tensor number,
                          Tensor::From<int64_t>({batches}, Shape()));
    return TensorDict::Create({}, {{kBatches, std::move(number)}});
  }

  // sample_dim counts batch dimensions, also from the back.
  absl::StatusOr<int> FindDim(const Shape& shape) const {
    const int64_t rank = shape.rank();
    const int64_t dim = options_.sample_dim < 0 ? options_.sample_dim + rank
                                                : options_.sample_dim;
    if (dim >= 0 && dim < rank) return static_cast<int>(dim);
    return InvalidArgument(kForward, ": sample_dim ", options_.sample_dim,
                           ": got batch shape ", shape.ToString(),
                           ", want one with this dimension");
  }

  absl::Status TooShort(int64_t got) const {
    return InvalidArgument(kForward, ": got a line of ", got,
                           " steps, want sub_seq_len = ", options_.sub_seq_len,
                           "; read longer sequences, or crop less");
  }

  absl::Status Crop(int dim, uint64_t number, TensorDict* batch) const {
    const Shape& shape = batch->batch_shape();
    const Lines lines = {.outer = shape.Prefix(dim).num_elements(),
                         .steps = shape[dim],
                         .inner = shape.Suffix(dim + 1).num_elements()};
    if (lines.steps < options_.sub_seq_len) return TooShort(lines.steps);
    // `starts` first holds the number of steps of each line.
    RILL_ASSIGN_OR_RETURN(std::vector<int64_t> starts,
                          CountSteps(lines, *batch));
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t choices = starts[i] - options_.sub_seq_len + 1;
      if (choices < 1) return TooShort(starts[i]);
      // The line is the draw's number: lines are independent, and a line's crop
      // does not depend on the others.
      starts[i] = rng_.UniformInt(number, static_cast<uint32_t>(i), choices);
    }
    const std::vector<int64_t> rows = RowsFrom(starts, lines);
    // Leaves that the batch loses and those that take their place.
    device_work_.KeepUpTo(2 * static_cast<size_t>(batch->num_leaves()));
    LeafGather gather(lines.rows(), rows, &device_work_);
    // MapShape applies the same map to each kind of entry, and refuses ragged
    // ones.
    RILL_ASSIGN_OR_RETURN(
        TensorDict cropped,
        batch->MapShape(
            shape.WithSize(dim, options_.sub_seq_len), [&](const Tensor& leaf) {
              return gather.Add(
                  leaf, leaf.shape().WithSize(dim, options_.sub_seq_len));
            }));
    RILL_RETURN_IF_ERROR(gather.Run());
    if (!batch->dim_names().empty()) {
      RILL_RETURN_IF_ERROR(cropped.SetDimNames(batch->dim_names()));
    }
    *batch = std::move(cropped);
    return absl::OkStatus();
  }

  // The steps of each line that may be taken: a count, as those that the mask
  // allows come first.
  absl::StatusOr<std::vector<int64_t>> CountSteps(
      const Lines& lines, const TensorDict& batch) const {
    std::vector<int64_t> steps(static_cast<size_t>(lines.count()), lines.steps);
    const Tensor* const found =
        options_.mask_key.empty() ? nullptr : batch.Find(options_.mask_key);
    if (found == nullptr) return steps;
    if (found->dtype() != DType::kBool ||
        found->num_elements() != batch.batch_shape().num_elements()) {
      return InvalidArgument(
          kForward, ": \"", options_.mask_key, "\": got ",
          DTypeName(found->dtype()), found->shape().ToString(),
          ", want one bool for each row of ", batch.batch_shape().ToString());
    }
    // The starts depend on it, so a device is waited for.
    RILL_ASSIGN_OR_RETURN(
        const Tensor mask,
        transforms_internal::FetchLeaf(kForward, options_.mask_key,
                                       DType::kBool, found->shape(), batch));
    std::fill(steps.begin(), steps.end(), 0);
    const bool* flag = mask.data<bool>();
    for (int64_t o = 0; o < lines.outer; ++o) {
      for (int64_t t = 0; t < lines.steps; ++t) {
        for (int64_t i = 0; i < lines.inner; ++i) {
          steps[static_cast<size_t>(o * lines.inner + i)] += *flag++ ? 1 : 0;
        }
      }
    }
    return steps;
  }

  // The rows of the result. Those of a line are `inner` rows apart, so that
  // neighbours of the result may come from different steps.
  std::vector<int64_t> RowsFrom(absl::Span<const int64_t> starts,
                                const Lines& lines) const {
    std::vector<int64_t> rows;
    rows.reserve(starts.size() * static_cast<size_t>(options_.sub_seq_len));
    for (int64_t o = 0; o < lines.outer; ++o) {
      for (int64_t t = 0; t < options_.sub_seq_len; ++t) {
        for (int64_t i = 0; i < lines.inner; ++i) {
          const int64_t step =
              o * lines.steps +
              starts[static_cast<size_t>(o * lines.inner + i)] + t;
          rows.push_back(step * lines.inner + i);
        }
      }
    }
    return rows;
  }

  const RandomCropTensorDict::Options options_;
  const Rng rng_;
  mutable DeviceWork device_work_{2};
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> RandomCropTensorDict::Create(
    const Options& options) {
  if (options.sub_seq_len < 1) {
    return InvalidArgument("RandomCropTensorDict::Create: sub_seq_len: got ",
                           options.sub_seq_len, ", want > 0");
  }
  if (!options.mask_key.empty()) {
    RILL_RETURN_IF_ERROR(CheckKey(options.mask_key))
        << "RandomCropTensorDict::Create: mask_key";
  }
  return std::make_unique<RandomCrop>(options);
}

}  // namespace rill
