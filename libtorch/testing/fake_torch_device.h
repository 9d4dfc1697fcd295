// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_
#define RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_

#include "rill/device/backend.h"

namespace rill {

// Shows torch the fake device of tests (FakeBackend) as its PrivateUse1, with
// two devices: tensors lie there and streams are those of FakeBackend. It has
// no kernels; a test launches its own. Once a process is enough.
void RegisterFakeTorchDevice();

// Torch's current stream of all fake devices, in all threads, from now on.
void SetFakeTorchStream(StreamHandle stream);

}  // namespace rill

#endif  // RILL_LIBTORCH_TESTING_FAKE_TORCH_DEVICE_H_
