// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_SUM_TREE_DEVICE_SUM_TREE_H_
#define RILL_DEVICE_SUM_TREE_DEVICE_SUM_TREE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/sum_tree/tree_kernels.h"

namespace rill {

// Weights of slots in the memory of a device, and draws in proportion to them:
// samplers/sum_tree there. Equal leaves give equal totals, finds and draws on
// every device, bit for bit: nodes are lines of 8, recomputed and never
// accumulated, and draws are those of PrioritizedSelector.
//
// Arrays of a call have `count` places in memory that the device can reach. The
// work is enqueued on `stream`, of the tree's device; the caller keeps the
// arrays, and the tree, until it got there. Calls for one tree are ordered: by
// one stream, or by events.
//
// Values are >= 0 and finite, and so is their sum; slots are in [0, size()).
// Neither is checked.
//
// Errors: those of LaunchKernel (kernel_launch.h). INVALID_ARGUMENT where the
//   stream is another device's, or count < 0. Nothing was enqueued then.
// Thread-safety: thread-compatible.
// Cost: one launch a call. Find and Sample: a thread a place, O(log8(size)).
//   Set: one block, O(count / 1024 * log8(size)). 18.3 bytes a slot.
//
// Shown on the fake device; CUDA links @rill//cuda.
//
// Example (DeviceSumTreeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto tree,
//                         DeviceSumTree::Create(1'000'000, Device::Cuda()));
//   RILL_RETURN_IF_ERROR(tree->Set(slots, weights, 256, stream));
//   RILL_RETURN_IF_ERROR(tree->Sample({.seed = 7, .batch = n}, drawn,
//                                     /*weights=*/nullptr, 256, stream));
class DeviceSumTree {
 public:
  // All 0. INVALID_ARGUMENT where size < 1; RESOURCE_EXHAUSTED. Waits.
  static absl::StatusOr<std::unique_ptr<DeviceSumTree>> Create(int64_t size,
                                                               Device device);

  int64_t size() const { return size_; }
  Device device() const { return device_; }
  // In the tree's memory.
  const double* total() const;

  // Where a slot comes twice, the last value counts.
  absl::Status Set(const int64_t* slots, const double* weights, int64_t count,
                   const Stream& stream);

  // For each target the slot with
  //   sum of the values before it <= target < that sum plus its own value.
  // A target >= the total finds the last slot above 0, one below 0 (or NaN) the
  // first. The total is above 0 by then.
  absl::Status Find(const double* targets, int64_t* slots, int64_t count,
                    const Stream& stream) const;

  struct Draws {
    uint64_t seed = 0;
    RngStream stream = RngStream::kSampler;
    uint64_t batch = 0;
    uint32_t first = 0;  // The number of the first draw.
    // Draw i falls into the i-th of `count` equal shares of the total.
    bool stratified = false;
  };
  // Slots in proportion to their values, which `weights` gets unless it is
  // null. The total is above 0 by then.
  absl::Status Sample(const Draws& draws, int64_t* slots, double* weights,
                      int64_t count, const Stream& stream) const;

 private:
  DeviceSumTree() = default;

  absl::Status Check(absl::string_view caller, int64_t count,
                     const Stream& stream) const;
  double* values() const;

  int64_t size_ = 0;
  Device device_;
  device_internal::TreeLayout layout_;
  std::shared_ptr<Buffer> memory_;  // Values, then claims.
  int64_t next_number_ = 1;         // Of a place of a write.
};

}  // namespace rill

#endif  // RILL_DEVICE_SUM_TREE_DEVICE_SUM_TREE_H_
