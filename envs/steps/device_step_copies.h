// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_DEVICE_STEP_COPIES_H_
#define RILL_ENVS_STEPS_DEVICE_STEP_COPIES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/steps/row_moves.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {

// The copies between leaves of a step on a device and the tensors that
// transforms beside an environment read and write in host memory. Which leaves
// go which way is said once; then each part of a step has one call.
//
// Thread-safety: thread-compatible. Holds the tensors' bytes.
// Device/Stream: works on the device's default stream, behind what was enqueued
//   there. StepsToHost and RowsToHost come behind the thread's current stream
//   too, for which the environment's leaves are complete. A call waits for its
//   copies, but for ActionsToDevice.
// Cost: a call is one copy of a whole leaf each and one wait. Without leaves it
//   is nothing. RowsToDevice is a gather and a scatter besides.
class DeviceStepCopies {
 public:
  // Errors of the device.
  static absl::StatusOr<std::unique_ptr<DeviceStepCopies>> Create(
      Device device, int64_t lanes);
  ~DeviceStepCopies();
  DeviceStepCopies(const DeviceStepCopies&) = delete;
  DeviceStepCopies& operator=(const DeviceStepCopies&) = delete;

  // Zeros in pinned memory, and on the device: the two sides of a copy.
  absl::StatusOr<Tensor> HostZeros(DType dtype, const Shape& shape) const;
  absl::StatusOr<Tensor> DeviceZeros(DType dtype, const Shape& shape) const;

  // A pair of `leaf` on the device and `host`, contiguous and of one layout,
  // each [lanes, ...]. TakeX copies to the host, GiveX to the device.
  void TakeAction(const Tensor& leaf, const Tensor& host);
  void GiveAction(const Tensor& leaf, const Tensor& host);
  void TakeNext(const Tensor& leaf, const Tensor& host);
  void GiveNext(const Tensor& leaf, const Tensor& host);
  // The same of the root. Only the rows that a reset names are written.
  absl::Status TakeRoot(const Tensor& leaf, const Tensor& host);
  absl::Status GiveRoot(const Tensor& leaf, const Tensor& host);
  // A leaf of the root that callers do not see and so do not carry:
  // StepsToDevice copies `next` to it, on the device, and RootsToDevice `host`.
  void Carry(const Tensor& next, const Tensor& root, const Tensor& host);
  // Behind all of these.
  absl::Status Bind();

  absl::Status ActionsToHost() const;
  // Work behind the default stream sees them.
  absl::Status ActionsToDevice() const;
  absl::Status StepsToHost() const;
  absl::Status StepsToDevice() const;
  absl::Status RowsToHost(absl::Span<const int64_t> rows) const;
  absl::Status RowsToDevice(absl::Span<const int64_t> rows) const;
  absl::Status RootsToDevice() const;

 private:
  struct Copy {
    Tensor from;
    Tensor to;
  };
  struct RowCopy {
    Tensor leaf;
    Tensor whole;  // The leaf on the host.
    Tensor host;
  };

  DeviceStepCopies(Stream stream, int64_t lanes)
      : stream_(std::move(stream)), lanes_(lanes) {}

  absl::Status AwaitLeaves() const;
  absl::Status Enqueue(const std::vector<Copy>& copies) const;
  absl::Status Run(const std::vector<Copy>& copies) const;
  absl::Status Finish(absl::Status status) const;

  const Stream stream_;
  const int64_t lanes_;
  std::vector<Copy> actions_to_host_;
  std::vector<Copy> actions_to_device_;
  std::vector<Copy> steps_to_host_;
  std::vector<Copy> steps_to_device_;
  std::vector<RowCopy> rows_to_host_;
  std::vector<Copy> rows_to_device_;  // To all rows beside the leaf.
  RowMoves shown_rows_;               // From there to the leaf.
  std::vector<Copy> roots_to_device_;
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_STEPS_DEVICE_STEP_COPIES_H_
