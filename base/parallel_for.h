// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_PARALLEL_FOR_H_
#define RILL_BASE_PARALLEL_FOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace rill {

// Calls fn(i) once for each i in [0, count), in no order, by up to
// `num_threads` threads. The calling thread is one of them; the others are gone
// when it returns. Where the system starts no further thread, those that there
// are do the work: it never fails.
//
// Thread-safety: thread-safe; `fn` is called by several threads at once.
// Cost: starting and joining threads, some 20 us each; one atomic addition a
//   call.
void ParallelFor(int64_t count, int num_threads,
                 absl::FunctionRef<void(int64_t)> fn);

}  // namespace rill

#endif  // RILL_BASE_PARALLEL_FOR_H_
