// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_DEVICE_GATHER_H_
#define RILL_REPLAY_SAMPLING_DEVICE_GATHER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/specs/spec.h"
#include "rill/storage/table_leaf.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// A chain of transforms as a part of a gather on a device. The kernel that maps
// a leaf reads its rows where they lie in the storage (TableLeaf), and writes
// the batch. FusedGather is that of the host.
// Thread-safety: thread-compatible.
class DeviceGather {
 public:
  // True if the maps of stored rows may come before the unit's arithmetic,
  // which neither reads nor changes them, and those of other leaves are done in
  // place behind it.
  static bool CanMap(const GatherPlan& plan, const TensorDictSpec& rows,
                     const UnitTransform* unit);

  // `unit_batch` is the batch's spec before the chain. CanMap has passed the
  // plan and these rows. Errors of the maps.
  static absl::StatusOr<std::unique_ptr<DeviceGather>> Create(
      const GatherPlan& plan, const TensorDictSpec& rows,
      const UnitTransform* unit, const TensorDictSpec& unit_batch);

  // The batch's spec, before the leaves that a sample adds.
  const TensorDictSpec& spec() const { return spec_; }

  // A leaf that is made of leaf `from` of the unit's batch.
  struct Output {
    std::string from;
    std::string key;                                       // In the batch.
    std::vector<std::shared_ptr<const RowMap>> maps = {};  // Empty: a copy.
    bool is_made = false;  // By the unit; it has the same key in the batch.
  };
  const std::vector<Output>& outputs() const { return outputs_; }

  // Part `part` of a row of an output: each has as many bytes.
  struct Read {
    size_t output = 0;
    size_t part = 0;
    size_t parts = 1;
    TableLeaf table = {};
  };
  // Enqueues the maps of these, with all leaves in `batch`, on the device's
  // current stream: one launch where they are few. The caller keeps all tensors
  // until the stream got there.
  absl::Status Enqueue(absl::Span<Read* const> reads, Device device,
                       const TensorDict& batch);
  // The same of the leaves that the unit has made; nothing where none is
  // mapped.
  absl::Status EnqueueMade(Device device, const TensorDict& batch);
  // The capture of an Enqueue has failed.
  void ForgetCaptured() { work_.ForgetCaptured(); }

 private:
  DeviceGather() : work_(0) {}

  absl::Status Map(const Read& read, const TensorDict& batch,
                   transforms_internal::DeviceWork::Call* call,
                   transforms_internal::ElementCopies* copies) const;

  TensorDictSpec spec_;
  std::vector<Output> outputs_;
  // Numbers of the maps, and results between them, used again.
  transforms_internal::DeviceWork work_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_DEVICE_GATHER_H_
