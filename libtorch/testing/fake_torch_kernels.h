// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TESTING_FAKE_TORCH_KERNELS_H_
#define RILL_LIBTORCH_TESTING_FAKE_TORCH_KERNELS_H_

namespace rill::libtorch_internal {

// Gives torch its operations on PrivateUse1, for RegisterFakeTorchDevice. Each
// is the CPU's, run as a kernel of FakeBackend in torch's current stream.
// Called once a process.
void RegisterFakeTorchKernels();

}  // namespace rill::libtorch_internal

#endif  // RILL_LIBTORCH_TESTING_FAKE_TORCH_KERNELS_H_
