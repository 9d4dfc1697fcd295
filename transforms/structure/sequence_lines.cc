// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/sequence_lines.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kForward = "SequenceLines::Forward";
constexpr absl::string_view kStep = "step_in_sequence";
constexpr absl::string_view kDone = "next/done";
constexpr absl::string_view kMask = "collector/mask";

absl::Status NotWhole(int64_t length, int64_t row) {
  return InvalidArgument(
      kForward, ": length: got ", length, ", but a sequence ends before row ",
      row,
      ", inside a line; want the rows of a sequence, burn-in "
      "and bootstrap too, and units that draw as many each "
      "(SequenceEnd::kPad, is_strict)");
}

class SequenceLinesTransform final : public BatchTransform {
 public:
  explicit SequenceLinesTransform(int64_t length) : length_(length) {}

  absl::string_view name() const override { return "SequenceLines"; }
  OptionValues option_values() const override {
    return OptionValues().Int("length", length_);
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    const Shape& shape = batch->batch_shape();
    if (shape.rank() != 1 || shape[0] % length_ != 0) {
      return InvalidArgument(kForward, ": batch shape: got ", shape.ToString(),
                             ", want [rows], a multiple of length ", length_);
    }
    RILL_RETURN_IF_ERROR(batch->Contains(kStep) ? CheckSteps(*batch)
                                                : CheckSlices(*batch));
    const std::vector<std::string>& names = batch->dim_names();
    std::string last(names.empty() ? kTimeName : names[0]);
    RILL_ASSIGN_OR_RETURN(TensorDict lines,
                          batch->Reshape({shape[0] / length_, length_}));
    RILL_RETURN_IF_ERROR(lines.SetDimNames({"sequences", std::move(last)}));
    *batch = std::move(lines);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSteps(const TensorDict& batch) const {
    RILL_ASSIGN_OR_RETURN(
        const Tensor steps,
        transforms_internal::FetchLeaf(kForward, kStep, DType::kInt64,
                                       batch.batch_shape(), batch));
    for (int64_t row = 0; row < steps.num_elements(); ++row) {
      if (steps.data<int64_t>()[row] != row % length_) {
        return NotWhole(length_, row);
      }
    }
    return absl::OkStatus();
  }

  // A slice is done at its last step, and padded behind that.
  absl::Status CheckSlices(const TensorDict& batch) const {
    if (batch.Find(kDone) == nullptr) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(
        const Tensor done,
        transforms_internal::FetchLeaf(kForward, kDone, DType::kBool,
                                       batch.batch_shape().Concat({1}), batch));
    Tensor mask;
    if (batch.Find(kMask) != nullptr) {
      RILL_ASSIGN_OR_RETURN(
          mask, transforms_internal::FetchLeaf(kForward, kMask, DType::kBool,
                                               batch.batch_shape(), batch));
    }
    for (int64_t row = 0; row + 1 < done.num_elements(); ++row) {
      const bool pads_behind = mask.is_valid() && !mask.data<bool>()[row + 1];
      if (done.data<bool>()[row] && (row + 1) % length_ != 0 && !pads_behind) {
        return NotWhole(length_, row + 1);
      }
    }
    return absl::OkStatus();
  }

  const int64_t length_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> SequenceLines::Create(
    const Options& options) {
  if (options.length < 1) {
    return InvalidArgument("SequenceLines::Create: length: got ",
                           options.length, ", want > 0");
  }
  return std::make_unique<SequenceLinesTransform>(options.length);
}

}  // namespace rill
