// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_PEAK_MEMORY_H_
#define RILL_TESTING_PEAK_MEMORY_H_

#include <sys/resource.h>

#include <cstdint>

namespace rill {

// The most memory, in bytes, that this process ever had: by what it grows over
// a piece of work that piece has taken no more. Thread-safety: thread-safe.
inline int64_t PeakMemoryBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

}  // namespace rill

#endif  // RILL_TESTING_PEAK_MEMORY_H_
