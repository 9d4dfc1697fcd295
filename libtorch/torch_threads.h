// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TORCH_THREADS_H_
#define RILL_LIBTORCH_TORCH_THREADS_H_

#include "absl/status/status.h"

namespace rill {

// The calling thread splits operations of torch among `threads` threads, itself
// one of them. So do, in this process, no other threads from here on, but those
// that have called torch before: these keep their numbers. Call it in the
// learner's thread before others call torch; again in it for another number.
//
// Why: by itself torch splits each larger operation among as many threads as
// the machine has cores. Every thread that calls torch gets a pool of its own
// that large: four workers on eight cores have 32 threads. The threads of a
// pool spin for a while when an operation has ended. They take the cores from
// environments, prefetch and other workers. So one thread has several, the
// learner's, and all others compute alone.
//
// Rill's threads are options of the parts that have them (workers of a
// collector, BufferOptions::prefetch_threads, LaneEnvOptions::threads). For all
// of them and `threads` together take the number of cores.
//
// Worker processes of a collector are the program started again, so the parent
// may have used torch before. The function that makes a worker's parts calls
// SetTorchThreads(1) first. So does a child of fork() alone: where the parent
// had more than one, the child's first operation would wait for ever for those.
//
// torch::jit::fork has a pool of its own (at::set_num_interop_threads), which
// starts with its first use, and is left as it is.
//
// INVALID_ARGUMENT unless `threads` is in [1, 1024].
// Thread-safety: one call at a time.
absl::Status SetTorchThreads(int threads);

}  // namespace rill

#endif  // RILL_LIBTORCH_TORCH_THREADS_H_
