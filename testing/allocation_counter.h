// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_ALLOCATION_COUNTER_H_
#define RILL_TESTING_ALLOCATION_COUNTER_H_

#include <cstdint>

#include "rill/base/fault_point.h"

namespace rill {

// Counts what the program allocates while it lives: calls of operator new, and
// the bytes of tensors in host memory. A program that links this has a global
// operator new of its own, so its test is one of its own.
//
// Thread-safety: counts all threads. One at a time.
class AllocationCounter {
 public:
  AllocationCounter();

  int64_t count() const;

 private:
  ScopedFaultHook count_buffers_;
  int64_t before_;
};

}  // namespace rill

#endif  // RILL_TESTING_ALLOCATION_COUNTER_H_
