// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/device_priorities.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensors/dtype.h"

namespace rill::replay_internal {
namespace {

// The memory of an update, until its stream got there.
struct Kept {
  Tensor slots, generations, priorities;
  Tensor pinned_slots, pinned_generations;
};

absl::Status CheckFloats(absl::string_view caller, const Tensor& priorities) {
  if (priorities.dtype() == DType::kFloat32) return absl::OkStatus();
  return InvalidArgument(caller, ": priorities: got ",
                         DTypeName(priorities.dtype()), ", want float32");
}

// An int64 leaf with its values at that point of the stream.
absl::Status TakeNumbers(absl::string_view caller, const TensorDict& sample,
                         absl::string_view key, const Stream& stream,
                         Tensor* there, Tensor* pinned) {
  absl::StatusOr<Tensor> leaf = sample.Get(key);
  RILL_RETURN_IF_ERROR(leaf.status()) << caller << ": want a sample's leaves";
  if (leaf->dtype() != DType::kInt64) {
    return InvalidArgument(caller, ": \"", key, "\": got ",
                           DTypeName(leaf->dtype()), ", want int64");
  }
  const Device device = stream.device();
  if (!leaf->is_host() && leaf->device() == device && leaf->is_contiguous()) {
    *there = *std::move(leaf);
    return absl::OkStatus();
  }
  // A copy of its own: the next sample may write over the leaf.
  RILL_ASSIGN_OR_RETURN(*pinned, leaf->To(Device::Cpu()));
  if (pinned->is_pinned()) {
    RILL_ASSIGN_OR_RETURN(*pinned, pinned->Clone());
  }
  RILL_ASSIGN_OR_RETURN(*pinned, pinned->Pin(device));
  RILL_ASSIGN_OR_RETURN(
      *there,
      Tensor::Empty(DType::kInt64, pinned->shape(),
                    {.device = device, .memory_kind = MemoryKind::kDevice}));
  return CopyAsync(there->raw_data(), pinned->raw_data(), pinned->size_bytes(),
                   stream);
}

}  // namespace

absl::StatusOr<bool> LieWithPriorities(absl::string_view caller,
                                       const PriorityUpdater* updater,
                                       const TensorDict& sample,
                                       const Tensor& priorities) {
  if (updater == nullptr || priorities.is_host() ||
      priorities.device() != updater->device() || !priorities.is_contiguous()) {
    return false;
  }
  const absl::StatusOr<Tensor> slots = sample.Get(kIndexKey);
  RILL_RETURN_IF_ERROR(slots.status()) << caller << ": want a sample's leaves";
  return slots->num_elements() == priorities.num_elements();
}

absl::Status UpdateWhereTheyLie(absl::string_view caller,
                                PriorityUpdater& updater,
                                const TensorDict& sample,
                                const Tensor& priorities) {
  RILL_RETURN_IF_ERROR(CheckFloats(caller, priorities));
  RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(updater.device()));
  auto kept = std::make_shared<Kept>();
  kept->priorities = priorities;
  absl::Status status = TakeNumbers(caller, sample, kIndexKey, stream,
                                    &kept->slots, &kept->pinned_slots);
  if (status.ok()) {
    status = TakeNumbers(caller, sample, kGenerationKey, stream,
                         &kept->generations, &kept->pinned_generations);
  }
  if (status.ok() &&
      kept->slots.num_elements() != kept->generations.num_elements()) {
    status = InvalidArgument(caller, ": \"", kGenerationKey, "\": got ",
                             kept->generations.shape().ToString(),
                             ", want the shape of \"", kIndexKey, "\", ",
                             kept->slots.shape().ToString());
  }
  if (status.ok()) {
    status = updater.Update({.slots = kept->slots.data<int64_t>(),
                             .generations = kept->generations.data<int64_t>(),
                             .priorities = priorities.data<float>(),
                             .count = priorities.num_elements()},
                            kept, stream);
  }
  // A copy that is under way reads what would go.
  if (!status.ok()) stream.Synchronize().IgnoreError();
  return status;
}

absl::StatusOr<Tensor> PrioritiesOnHost(absl::string_view caller,
                                        const Tensor& priorities) {
  RILL_RETURN_IF_ERROR(CheckFloats(caller, priorities));
  if (!priorities.is_host()) {
    RILL_ASSIGN_OR_RETURN(const Stream stream,
                          CurrentStream(priorities.device()));
    RILL_RETURN_IF_ERROR(stream.Synchronize());
  }
  RILL_ASSIGN_OR_RETURN(const Tensor on_host, priorities.To(Device::Cpu()));
  return on_host.Contiguous();
}

}  // namespace rill::replay_internal
