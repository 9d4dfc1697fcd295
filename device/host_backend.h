// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_HOST_BACKEND_H_
#define RILL_DEVICE_HOST_BACKEND_H_

#include <memory>

#include "rill/device/backend.h"

namespace rill {

// The CPU: pageable memory, aligned to 64 bytes, and everything done when the
// call returns. Allocations of 4 MiB and more are aligned to 2 MiB and the
// kernel is asked for huge pages, which makes random rows of big storages about
// twice as fast. More than the machine has in memory and swap is
// RESOURCE_EXHAUSTED. Always registered; Device::Cpu() finds it.
//
// Thread-safety: thread-safe. Fault point: "host.allocate" (object "cpu").
std::unique_ptr<Backend> MakeHostBackend();

}  // namespace rill

#endif  // RILL_DEVICE_HOST_BACKEND_H_
