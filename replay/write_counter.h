// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITE_COUNTER_H_
#define RILL_REPLAY_WRITE_COUNTER_H_

#include <atomic>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::replay_internal {

// Counts a storage's events: two equal counts have no write between them, nor
// one that was in flight at the first.
// Thread-safety: thread-safe.
class WriteCounter final : public WriteObserver {
 public:
  int64_t count() const { return count_; }

  void OnAttach(const Lanes& /*lanes*/,
                absl::Span<const Cursor> /*cursors*/) override {
    ++count_;
  }
  void OnRetire(const WriteEvent& /*event*/) override { ++count_; }
  void OnWrite(const WriteEvent& /*event*/) override { ++count_; }
  void OnClear() override { ++count_; }

 private:
  std::atomic<int64_t> count_ = 0;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_WRITE_COUNTER_H_
