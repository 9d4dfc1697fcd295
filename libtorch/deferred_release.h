// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_DEFERRED_RELEASE_H_
#define RILL_LIBTORCH_DEFERRED_RELEASE_H_

#include <memory>

#include "rill/device/buffer.h"
#include "rill/device/stream.h"

namespace rill::libtorch_internal {

// Gives `buffer` up once `stream` has done all that it was given by now. Torch
// drops a tensor while its kernels still read it; Rill's memory may only go
// behind the last use (Backend::Free). The host does not wait: the buffer goes
// with a later call of either function.
// Thread-safety: thread-safe. Cost: an event.
void ReleaseBehind(std::shared_ptr<Buffer> buffer, const Stream& stream);

// Drops the buffers whose streams got there; how many are left.
int SweepReleased();

}  // namespace rill::libtorch_internal

#endif  // RILL_LIBTORCH_DEFERRED_RELEASE_H_
