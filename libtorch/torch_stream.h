// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TORCH_STREAM_H_
#define RILL_LIBTORCH_TORCH_STREAM_H_

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

namespace rill {

// Rill's name of the device of torch's tensors. INVALID_ARGUMENT: one that Rill
// has not, as a meta device.
absl::StatusOr<Device> DeviceOfTorch(c10::Device device);

// Torch's name of it. FAILED_PRECONDITION where this LibTorch has not the
// device: it was built without CUDA, or sees fewer.
absl::StatusOr<c10::Device> TorchDevice(Device device);

// The stream that torch's next work on `device` in this thread goes to,
// borrowed (Stream::Borrow). Rill's work that is given to it runs in order with
// torch's: CopyAsync of what a network made, or WaitFor an event before torch
// reads. On the CPU all is done at once.
//
// The fake device of tests is torch's PrivateUse1, where a test has registered
// a guard for that.
// Thread-safety: thread-safe. Device/Stream: nothing waits. Errors of
// TorchDevice; FAILED_PRECONDITION where Rill has no backend for the device.
absl::StatusOr<Stream> CurrentTorchStream(Device device);

}  // namespace rill

#endif  // RILL_LIBTORCH_TORCH_STREAM_H_
