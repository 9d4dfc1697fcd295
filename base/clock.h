// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_CLOCK_H_
#define RILL_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace rill {

// The only place where the library reads time, so that tests can hold it.
// Thread-safety: thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The machine's clock. Lives for ever.
  static const Clock& System();
  // Never goes back, and tells no date: for how long something takes. Lives for
  // ever.
  static const Clock& Steady();
};

}  // namespace rill

#endif  // RILL_BASE_CLOCK_H_
