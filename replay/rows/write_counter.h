// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_WRITE_COUNTER_H_
#define RILL_REPLAY_ROWS_WRITE_COUNTER_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/write_capture.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::replay_internal {

// Counts a storage's events: two equal counts have no write between them, nor
// one that was in flight at the first. Tells DrawnRows (drawn_rows.h) when a
// write's rows are retired; a sampler that was registered before has already
// been notified.
// Thread-safety: thread-safe.
class WriteCounter final : public WriteObserver {
 public:
  explicit WriteCounter(DrawnRows* drawn_rows) : drawn_rows_(drawn_rows) {}

  int64_t count() const { return count_; }
  // How many of these are events in which all rows went.
  int64_t clears() const { return clears_; }

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& /*lanes*/,
                absl::Span<const Cursor> /*cursors*/) override {
    ++count_;
  }
  void OnRetire(const WriteEvent& event) override {
    ++count_;
    drawn_rows_->Retired(RowsOf(event));
  }
  int64_t BeforeOverwrite(absl::Span<const SlotRange> rows,
                          int64_t done) override {
    return drawn_rows_->BeforeOverwrite(rows, done);
  }
  void OnWrite(const WriteEvent& event) override {
    ++count_;
    WriteCapture::Note(this, event);
    // Else OnRetire has told of it.
    if (event.retired.empty()) drawn_rows_->Retired(RowsOf(event));
  }
  void OnClear() override {
    ++count_;
    ++clears_;
    drawn_rows_->Retired(std::numeric_limits<int64_t>::max());
  }

 private:
  static int64_t RowsOf(const WriteEvent& event) {
    int64_t rows = 0;
    for (const SlotRange& range : event.written) rows += range.count;
    return rows;
  }

  DrawnRows* const drawn_rows_;
  std::atomic<int64_t> count_ = 0;
  std::atomic<int64_t> clears_ = 0;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_WRITE_COUNTER_H_
