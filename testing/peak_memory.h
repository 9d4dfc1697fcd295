// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_PEAK_MEMORY_H_
#define RILL_TESTING_PEAK_MEMORY_H_

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace rill {

// The most memory, in bytes, that this process ever had: by what it grows over
// a piece of work that piece has taken no more. Thread-safety: thread-safe.
inline int64_t PeakMemoryBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

// The bytes of memory that this process holds now, but for pages of files that
// it has mapped; 0 where the kernel does not tell. Thread-safety: thread-safe.
inline int64_t AnonymousMemoryBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word) {
    if (word == "RssAnon:" && status >> kib) break;
  }
  return kib * 1024;
}

}  // namespace rill

#endif  // RILL_TESTING_PEAK_MEMORY_H_
