// SPDX-License-Identifier: Apache-2.0
// One pass from the back finds the last row of each row's trajectory. The copy
// then needs no search: step h of a chunk is row min(i + h, end).
#include "rill/transforms/actions/action_chunk.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/timeline/row_picks.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;

constexpr absl::string_view kCreate = "ActionChunk::Create";
constexpr absl::string_view kForward = "ActionChunk::Forward";
constexpr absl::string_view kForwardSpec = "ActionChunk::ForwardSpec";

// batch + [chunk_size] + row; INVALID_ARGUMENT where this has too many
// dimensions. The array has room for any two shapes.
absl::StatusOr<Shape> ShapeOf(absl::string_view caller, absl::string_view key,
                              const Shape& batch, int64_t chunk_size,
                              const Shape& row) {
  std::array<int64_t, 2 * Shape::kMaxRank + 1> sizes;
  auto end = absl::c_copy(batch.sizes(), sizes.begin());
  *end++ = chunk_size;
  end = absl::c_copy(row.sizes(), end);
  absl::StatusOr<Shape> shape = Shape::Create(absl::MakeConstSpan(sizes).first(
      static_cast<size_t>(end - sizes.begin())));
  RILL_RETURN_IF_ERROR(shape.status())
      << "for the chunk of \"" << key << "\" in " << caller;
  return shape;
}

class ActionChunkTransform final : public BatchTransform {
 public:
  // Two tensors each of chunks, pads and ends.
  explicit ActionChunkTransform(const ActionChunk::Options& options)
      : options_(options), spare_(6) {}

  absl::string_view name() const override { return "ActionChunk"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("chunk_size", options_.chunk_size)
        .Text("action_key", options_.action_key)
        .Text("chunk_key", options_.chunk_key)
        .Text("pad_key", options_.pad_key)
        .Text("done_key", options_.done_key);
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    const Shape& shape = batch->batch_shape();
    RILL_RETURN_IF_ERROR(
        transforms_internal::NumSteps(kForward, shape).status());
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckTimeIsLast(kForward, *batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor found,
        transforms_internal::GetLeaf(kForward, options_.action_key, *batch));
    if (!found.is_host()) return ChunkOnDevice(found.device(), batch);
    RILL_ASSIGN_OR_RETURN(
        const Tensor action,
        transforms_internal::ReadLeaf(kForward, options_.action_key, *batch));
    RILL_ASSIGN_OR_RETURN(
        const Shape to,
        ShapeOf(kForward, options_.action_key, shape, options_.chunk_size,
                action.shape().Suffix(shape.rank())));
    RILL_ASSIGN_OR_RETURN(const Tensor ends, FindEnds(*batch));
    for (const std::string* key : {&options_.chunk_key, &options_.pad_key}) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckMaySet(kForward, *key, *batch));
    }
    RILL_ASSIGN_OR_RETURN(const Tensor chunk, spare_.Take(action.dtype(), to));
    RILL_ASSIGN_OR_RETURN(
        const Tensor pad,
        spare_.Take(DType::kBool, to.Prefix(shape.rank() + 1)));
    Fill(action, ends, chunk, pad);
    RILL_RETURN_IF_ERROR(batch->Set(options_.chunk_key, chunk));
    return batch->Set(options_.pad_key, pad);
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec action,
        transforms_internal::GetSpec(kForwardSpec, options_.action_key, spec));
    if (!options_.done_key.empty()) {
      RILL_RETURN_IF_ERROR(WithAdvice(transforms_internal::CheckHasEnds(
          kForwardSpec, options_.done_key, spec)));
      RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
          kForwardSpec, options_.action_key, options_.done_key, spec));
    }
    // The domain of a chunk is that of the action, repeated along the new first
    // dimension of a row.
    RILL_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeOf(kForwardSpec, options_.action_key, {},
                                  options_.chunk_size, action.shape));
    RILL_ASSIGN_OR_RETURN(LeafSpec chunk, action.Unsqueeze(0));
    RILL_ASSIGN_OR_RETURN(chunk, chunk.Expand(shape));
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(after.Set(options_.chunk_key, std::move(chunk)))
        << kForwardSpec;
    RILL_RETURN_IF_ERROR(
        after.Set(options_.pad_key, LeafSpec::Binary({options_.chunk_size})))
        << kForwardSpec;
    return after;
  }

 private:
  static absl::Status WithAdvice(const absl::Status& status) {
    if (!absl::IsNotFound(status)) return status;
    return NotFound(
        status.message(),
        "; set done_key = \"\" where each line of a batch is of one "
        "trajectory");
  }

  absl::Status ChunkOnDevice(Device device, TensorDict* batch) const {
    const Shape& shape = batch->batch_shape();
    DeviceWork::Call call(&device_work_);
    RILL_RETURN_IF_ERROR(call.Begin(device)) << kForward;
    RILL_ASSIGN_OR_RETURN(const Tensor action,
                          transforms_internal::ReadDeviceLeaf(
                              kForward, options_.action_key, *batch, &call));
    RILL_ASSIGN_OR_RETURN(
        const Shape to,
        ShapeOf(kForward, options_.action_key, shape, options_.chunk_size,
                action.shape().Suffix(shape.rank())));
    transforms_internal::ChunkPickKernel kernel;
    kernel.lines = {.lines = shape.Prefix(shape.rank() - 1).num_elements(),
                    .time = shape[shape.rank() - 1],
                    .n = options_.chunk_size};
    if (!options_.done_key.empty()) {
      absl::StatusOr<Tensor> stops = transforms_internal::ReadStops(
          kForward, options_.done_key, *batch, &call);
      RILL_RETURN_IF_ERROR(WithAdvice(stops.status()));
      kernel.lines.stops = stops->data<uint8_t>();
    }
    for (const std::string* key : {&options_.chunk_key, &options_.pad_key}) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckMaySet(kForward, *key, *batch));
    }
    RILL_ASSIGN_OR_RETURN(Tensor chunk, call.Take(action.dtype(), to));
    RILL_ASSIGN_OR_RETURN(Tensor pad,
                          call.Take(DType::kBool, to.Prefix(shape.rank() + 1)));
    RILL_ASSIGN_OR_RETURN(
        const Tensor picks,
        call.Take(DType::kInt64, {kernel.lines.rows(), options_.chunk_size}));
    if (kernel.lines.rows() > 0) {
      kernel.picks = picks.data<int64_t>();
      kernel.is_pad = pad.data<uint8_t>();
      RILL_RETURN_IF_ERROR(
          transforms_internal::EnqueueChunkPicks(kernel, call.stream()));
      RILL_RETURN_IF_ERROR(transforms_internal::CopyPicks(
          action, picks, kernel.lines.rows(), options_.chunk_size, {}, chunk,
          call.stream()));
    }
    RILL_RETURN_IF_ERROR(batch->Set(options_.chunk_key, std::move(chunk)));
    RILL_RETURN_IF_ERROR(batch->Set(options_.pad_key, std::move(pad)));
    return call.End();
  }

  // For each row, the last one of its trajectory.
  absl::StatusOr<Tensor> FindEnds(const TensorDict& batch) const {
    const Shape& shape = batch.batch_shape();
    const int64_t rows = shape.num_elements();
    const int64_t length = shape[shape.rank() - 1];
    const bool* done = nullptr;
    Tensor flags;
    if (!options_.done_key.empty()) {
      absl::StatusOr<Tensor> stops =
          transforms_internal::ReadStops(kForward, options_.done_key, batch);
      RILL_RETURN_IF_ERROR(WithAdvice(stops.status()));
      flags = *std::move(stops);
      done = flags.data<bool>();
    }
    RILL_ASSIGN_OR_RETURN(const Tensor ends, spare_.Take(DType::kInt64, shape));
    int64_t* const end = ends.data<int64_t>();
    // From the back: a row that is no end has the end of the row behind it,
    // which is of the same line.
    for (int64_t i = rows - 1; i >= 0; --i) {
      const bool is_end = (i + 1) % length == 0 || (done != nullptr && done[i]);
      end[i] = is_end ? i : end[i + 1];
    }
    return ends;
  }

  // Past the end the last action repeats. The subtraction end - i does not
  // overflow, where i + h could.
  void Fill(const Tensor& action, const Tensor& ends, const Tensor& chunk,
            const Tensor& pad) const {
    const int64_t rows = ends.num_elements();
    if (rows == 0) return;
    const int64_t width = action.size_bytes() / rows;
    std::byte* to = chunk.raw_data();
    bool* is_pad = pad.data<bool>();
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t end = ends.data<int64_t>()[i];
      for (int64_t h = 0; h < options_.chunk_size; ++h) {
        *is_pad++ = h > end - i;
        // Actions without bytes still have pads.
        if (width == 0) continue;
        std::memcpy(to, action.raw_data() + (i + std::min(h, end - i)) * width,
                    static_cast<size_t>(width));
        to += width;
      }
    }
  }

  const ActionChunk::Options options_;
  // Chunks, pads and the ends of trajectories.
  mutable transforms_internal::SpareTensors spare_;
  mutable DeviceWork device_work_{8};
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> ActionChunk::Create(
    const Options& options) {
  if (options.chunk_size < 1) {
    return InvalidArgument(kCreate, ": chunk_size: got ", options.chunk_size,
                           ", want > 0");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.action_key))
      << kCreate << ": action_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.chunk_key)) << kCreate << ": chunk_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.pad_key)) << kCreate << ": pad_key";
  if (!options.done_key.empty()) {
    RILL_RETURN_IF_ERROR(CheckKey(options.done_key)) << kCreate << ": done_key";
  }
  std::vector<std::string> keys = {options.action_key, options.chunk_key,
                                   options.pad_key};
  if (!options.done_key.empty()) keys.push_back(options.done_key);
  constexpr absl::string_view kKeys =
      "action_key, chunk_key, pad_key, done_key";
  RILL_RETURN_IF_ERROR(transforms_internal::CheckKeys(kCreate, kKeys, keys));
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckCanBeLeaves(kCreate, kKeys, keys));
  return std::make_unique<ActionChunkTransform>(options);
}

}  // namespace rill
