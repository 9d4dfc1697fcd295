// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_WAKE_SIGNAL_H_
#define RILL_BASE_WAKE_SIGNAL_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rill {

// A wake signal that idle threads sleep on. A caller puts work where they look
// for it, then calls Notify. A thread that finds no work calls Await and looks
// again:
//
//   for (;;) if (work) do it; else signal.Await();
//
// A notification that comes between the look and the sleep is not missed: it is
// kept for as many sleepers as it is for.
//
// Thread-safety: thread-safe. Notify may be called with any lock held, since it
//   takes its own for a moment only.
// Cost: Notify takes some 10 us where it wakes a thread, else about 20 ns. A
//   woken thread wakes the next.
class WakeSignal {
 public:
  // No notification is for more than `sleepers`, at least 1.
  explicit WakeSignal(int64_t sleepers) : sleepers_(sleepers) {}

  // Wakes `count`, or all.
  void Notify(int64_t count) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    notified_ = std::min(notified_ + count, sleepers_);
  }
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_) { Notify(sleepers_); }

  void Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto is_notified = [this] {
      mutex_.AssertReaderHeld();
      return notified_ > 0;
    };
    mutex_.Await(absl::Condition(&is_notified));
    --notified_;
  }

 private:
  const int64_t sleepers_;
  absl::Mutex mutex_;
  int64_t notified_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill

#endif  // RILL_BASE_WAKE_SIGNAL_H_
