// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_CUDA_BACKEND_H_
#define RILL_DEVICE_CUDA_CUDA_BACKEND_H_

#include <memory>

#include "rill/device/backend.h"

namespace rill {

// CUDA devices, through the CUDA runtime, which is linked statically: a program
// with it starts on a machine without GPU and driver. Linking this library
// registers it; nothing of it needs to be named.
//
// Start: the first operation starts the driver. Nothing before that loads or
//   calls libcuda, so a program that stays on the CPU never touches it. A
//   process that was forked from one that had started it is refused with
//   FAILED_PRECONDITION: a driver does not survive a fork.
// Device/Stream: new streams are ordered with no other, also not with the
//   default stream; events order them. A copy from or to pageable host memory
//   may block the host. The caller's current device is as before after each
//   call.
// Memory: of a device it comes from a pool (device_pool.h), which keeps up to
//   1/16 of the device's memory for the next allocation. Page-locked memory
//   comes from a pool as well (block_pool.h), which keeps up to 256 MiB.
// Row copies: one kernel for up to 64 columns. Up to 512 rows travel with the
//   launch; a longer list is copied to the device on the same stream.
// Errors: see cuda_status.h. Out of memory names asked and free bytes. An error
//   that loses the device is that of each later call for it, at once.
// Thread-safety: thread-safe.
std::unique_ptr<Backend> MakeCudaBackend();

}  // namespace rill

#endif  // RILL_DEVICE_CUDA_CUDA_BACKEND_H_
