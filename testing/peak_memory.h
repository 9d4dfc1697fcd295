// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_PEAK_MEMORY_H_
#define RILL_TESTING_PEAK_MEMORY_H_

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/base/config.h"

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
#include <sanitizer/allocator_interface.h>
#endif

namespace rill {

// The most memory, in bytes, that this process ever had: by what it grows over
// a piece of work that piece has taken no more. Thread-safety: thread-safe.
inline int64_t PeakMemoryBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

// Whether PeakMemoryBytes tells what the program took: TSan takes memory of its
// own for what is allocated, touched or not.
#if defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kPeakMemoryIsOwn = false;
#else
inline constexpr bool kPeakMemoryIsOwn = true;
#endif

// The bytes of memory that this process holds now, but for pages of files that
// it has mapped; 0 where the kernel does not tell. Under a sanitizer, which
// keeps freed blocks and shadow memory: the bytes that are allocated, touched
// or not. Thread-safety: thread-safe.
inline int64_t AnonymousMemoryBytes() {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
#else
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word) {
    if (word == "RssAnon:" && status >> kib) break;
  }
  return kib * 1024;
#endif
}

}  // namespace rill

#endif  // RILL_TESTING_PEAK_MEMORY_H_
