// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TO_DEVICE_H_
#define RILL_TRANSFORMS_TO_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Moves every leaf of a batch that was read to a device. As the last step of a
// buffer ReplayBuffer::Options::device does the same; this is for moving before
// other transforms, or outside a buffer. TorchRL's DeviceCastTransform.
//
// Thread-safety: immutable.
// Device/Stream: the copies are complete when Forward returns.
//
// Example (ToDeviceTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto to_gpu, ToDevice::Create(Device::Cuda(0)));
class ToDevice {
 public:
  // FAILED_PRECONDITION where no backend for the device was linked in;
  // INVALID_ARGUMENT where there is no device of that index.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(Device device);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_TO_DEVICE_H_
