// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_
#define RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_

#include "rill/device/backend.h"

namespace rill {

// Shows torch the fake device of tests (FakeBackend) as its PrivateUse1, of
// the name "fake", with two devices: tensors lie there and streams are those of FakeBackend. Torch's
// operations, and those of autograd, are kernels of FakeBackend in torch's
// current stream, which give what the CPU's give. They are refused, as on a
// GPU, where tensors lie on several devices. None resizes a tensor, and of
// views there are those that strides can say. Memory of torch goes behind the
// work in its stream (deferred_release.h). Once a process is enough.
void RegisterFakeTorchDevice();

// Torch's current stream of all fake devices, in all threads, from now on.
void SetFakeTorchStream(StreamHandle stream);

}  // namespace rill

#endif  // RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_
