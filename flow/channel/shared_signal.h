// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_SHARED_SIGNAL_H_
#define RILL_FLOW_CHANNEL_SHARED_SIGNAL_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"

namespace rill::channel_internal {

// One process waits on it while others change memory that they share with it.
// It lies in that memory (a futex), and is all zero at first.
//
// The one that waits says so before it looks a last time, and the one that
// signals looks after it counted, so one of them sees the other. A process may
// be killed between its change and the signal: so the one that waits looks by
// itself every kLookAfter too.
//
// Thread-safety: Raise is thread-safe; one thread at a time waits.
// Cost: Raise takes some microseconds where it wakes somebody.
struct SharedSignal {
  static constexpr absl::Duration kLookAfter = absl::Milliseconds(20);

  std::atomic<uint32_t> count;
  std::atomic<uint32_t> is_awaited;

  // Behind the change that it tells of.
  void Raise() {
    count.fetch_add(1);
    if (is_awaited.load() == 0) return;
    syscall(SYS_futex, &count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  // Until `is_over(look)` is true or an error, which comes back. It is called
  // now and then; `look`, every kLookAfter, where it should see whether the
  // other side lives. DEADLINE_EXCEEDED after `timeout`.
  template <typename IsOver>
  absl::Status Await(absl::Duration timeout, IsOver is_over) {
    is_awaited.store(1);
    absl::StatusOr<bool> over = false;
    const Clock& clock = Clock::Steady();
    const absl::Time deadline = clock.Now() + timeout;
    absl::Time next_look = clock.Now() + kLookAfter;
    while (true) {
      const uint32_t seen = count.load();
      const absl::Time now = clock.Now();
      const bool look = now >= next_look;
      over = is_over(look);
      if (!over.ok() || *over) break;
      if (now >= deadline) {
        over = absl::DeadlineExceededError("nothing came in time");
        break;
      }
      if (look) next_look = now + kLookAfter;
      const timespec most =
          absl::ToTimespec(std::min(deadline - now, kLookAfter));
      // Sleeps while count == seen; returns early at will.
      syscall(SYS_futex, &count, FUTEX_WAIT, seen, &most, nullptr, 0);
    }
    is_awaited.store(0);
    return over.status();
  }
};

}  // namespace rill::channel_internal

#endif  // RILL_FLOW_CHANNEL_SHARED_SIGNAL_H_
