// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_CUDA_RECORD_H_
#define RILL_DEVICE_TESTING_CUDA_RECORD_H_

#include <string>
#include <vector>

namespace rill {

// The calls of the CUDA driver by this process, and by those that it started.
//
// A test that is built with rill_no_cuda_test (no_cuda.bzl) finds a stand-in
// under the name libcuda.so.1, which has no device and writes down that it was
// loaded ("(loaded)") and each call. Linking this library also makes the test
// program fail at its end if anything was written, so that "a CPU path never
// touches CUDA" is checked by running it.
//
// Thread-safety: thread-safe.

// Names in the order of the calls; empty is what a CPU path leaves.
std::vector<std::string> CudaCalls();

// Forgets the calls so far: for the tests that plant one.
void ForgetCudaCalls();

}  // namespace rill

#endif  // RILL_DEVICE_TESTING_CUDA_RECORD_H_
