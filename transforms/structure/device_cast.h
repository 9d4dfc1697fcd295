// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_DEVICE_CAST_H_
#define RILL_TRANSFORMS_STRUCTURE_DEVICE_CAST_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Transforms of where a batch's leaves lie. Values, keys and shapes stay.
// Thread-safety: immutable.
// Device/Stream: copies are complete when a call returns.
// Cost: a copy of the leaves that lie elsewhere.

// Moves every leaf to a device after a read, and to the original one before a
// write. TorchRL's DeviceCastTransform. ToDevice is the first half of it.
//
// Example (DeviceCastTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto cast, DeviceCast::Create({.device = Device::Cuda(0),
//                                      .orig_device = Device::Cpu()}));
class DeviceCast {
 public:
  struct Options {
    Device device = Device::Cpu();
    std::optional<Device> orig_device = std::nullopt;  // None: writes stay.
  };

  // FAILED_PRECONDITION where no backend for a device was linked in;
  // INVALID_ARGUMENT where there is no device of that index.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

// Copies every leaf of the host into page-locked memory after a read, from
// where copies to a device run beside other work. As the last step of a buffer
// ReplayBuffer::Options::pin_memory gathers into such memory and copies
// nothing. Nor is anything copied of a batch that is used again, which lies
// there already. TorchRL's PinMemoryTransform.
//
// Example (PinMemoryTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto pin, PinMemory::Create({.pin_for = Device::Cuda(0)}));
class PinMemory {
 public:
  struct Options {
    Device pin_for = Device::Cuda(0);  // Not the CPU.
  };

  // Errors as those of DeviceCast.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_DEVICE_CAST_H_
