// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_SPIN_THEN_BLOCK_LOCK_H_
#define RILL_BASE_SPIN_THEN_BLOCK_LOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/pause_cpu.h"

namespace rill {

// absl::MutexLock where others hold the mutex for a few microseconds. absl
// spins for about one before it sleeps. To sleep and be woken takes the two
// threads tens of them. This spins for about ten first, on x86-64.
class ABSL_SCOPED_LOCKABLE SpinThenBlockLock {
 public:
  explicit SpinThenBlockLock(absl::Mutex* mutex)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    constexpr int kLooks = 100;
    constexpr int kPauses = 4;
    for (int i = 0; i < kLooks; ++i) {
      if (mutex->TryLock()) return;
      for (int k = 0; k < kPauses; ++k) PauseCpu();
    }
    mutex->Lock();
  }
  ~SpinThenBlockLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  SpinThenBlockLock(const SpinThenBlockLock&) = delete;
  SpinThenBlockLock& operator=(const SpinThenBlockLock&) = delete;

 private:
  absl::Mutex* const mutex_;
};

}  // namespace rill

#endif  // RILL_BASE_SPIN_THEN_BLOCK_LOCK_H_
