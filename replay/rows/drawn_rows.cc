// SPDX-License-Identifier: Apache-2.0
// Draws and the beginnings of writes take tickets, in the order in which they
// come. A write gives its ticket on from the storage's retire event, when the
// sampler has been notified that its rows are gone. No batch that is drawn from
// then on has one of them.
//
// - A dense storage in host memory then asks, window by window, which rows it
//   may overwrite (BeforeOverwrite). DrawnRows lets it go up to the first row of
//   a batch whose gather is not over. By the time a write comes to that row the
//   gather mostly is. While the write waits none of its windows is open, so the
//   gather waits for nobody.
// - Other storages wait within their ticket, before they retire, for all rows
//   that they will overwrite. That is arithmetic on cursors, without a set of
//   rows.
//
// Copying and publishing of writes, and all gathers, go on side by side. A
// write of another buffer to the same storage waits for the gather too. Where
// it comes between plan and hold it does not, and the batch may have rows that
// are newer than its draw.
#include "rill/replay/rows/drawn_rows.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "rill/base/pause_cpu.h"

namespace rill::replay_internal {
namespace {

template <typename IsWanted>
bool HasRow(const SamplePlan& plan, IsWanted is_wanted) {
  // Without rows of its own a plan reads those of its draws.
  if (plan.rows.empty()) {
    for (const Draw& draw : plan.draws) {
      if (is_wanted(draw.slot)) return true;
    }
  }
  if (std::any_of(plan.rows.begin(), plan.rows.end(), is_wanted)) return true;
  for (const SamplePlan::Context& context : plan.context) {
    if (std::any_of(context.rows.begin(), context.rows.end(), is_wanted)) {
      return true;
    }
  }
  return false;
}

template <typename Visit>
void ForEachRow(const SamplePlan& plan, Visit visit) {
  HasRow(plan, [&](Slot slot) {
    visit(slot);
    return false;
  });
}

template <typename IsWanted>
bool AnyHasRow(const std::vector<const SamplePlan*>& plans,
               IsWanted is_wanted) {
  return std::any_of(plans.begin(), plans.end(), [&](const SamplePlan* plan) {
    return HasRow(*plan, is_wanted);
  });
}

}  // namespace

// Others hold the ticket for microseconds; to sleep and be woken takes fifty.
// So a thread looks for a while before it sleeps.
void DrawnRows::TakeTicket() {
  constexpr int kLooks = 2000;
  // A ticket: tickets go in the order of arrival, so neither draws nor writes
  // starve.
  const uint64_t mine = next_ticket_.fetch_add(1);
  for (int i = 0; i < kLooks; ++i) {
    if (serving_.load(std::memory_order_acquire) == mine) return;
    if (i % 64 == 63) std::this_thread::yield();
  }
  absl::MutexLock lock(&mutex_);
  const auto is_mine = [this, mine] { return serving_.load() == mine; };
  mutex_.Await(absl::Condition(&is_mine));
}

// A gather of narrow rows takes microseconds too, and one of rows of some KiB
// is over in a hundred. A thread that yields with the ticket would keep it for
// long where there are more threads than cores.
template <typename IsFree>
void DrawnRows::AwaitGathers(const IsFree& is_free) {
  constexpr int kLooks = 500;
  constexpr int kYields = 100;
  if (is_free()) return;
  const int looks =
      kLooks + (writer_ == std::this_thread::get_id() ? 0 : kYields);
  // Read with the lock held, so that no release between the test and the loop
  // is missed.
  const uint64_t seen = releases_.load(std::memory_order_relaxed);
  mutex_.Unlock();
  if (before_waiting_ != nullptr) before_waiting_();
  for (int i = 0; i < looks; ++i) {
    if (releases_.load(std::memory_order_relaxed) != seen) break;
    if (i < kLooks) {
      PauseCpu();
    } else {
      std::this_thread::yield();
    }
  }
  mutex_.Lock();
  mutex_.Await(absl::Condition(&is_free));
}

void DrawnRows::Hold(const SamplePlan* drawn) {
  absl::MutexLock lock(&mutex_);
  held_.push_back(drawn);
}

void DrawnRows::EndDraw() {
  absl::MutexLock lock(&mutex_);
  ++serving_;
}

void DrawnRows::Release(const SamplePlan* drawn) {
  absl::MutexLock lock(&mutex_);
  const auto place = std::find(held_.begin(), held_.end(), drawn);
  if (place == held_.end()) return;
  // The order of held plans does not matter.
  *place = held_.back();
  held_.pop_back();
  releases_.fetch_add(1, std::memory_order_relaxed);
}

void DrawnRows::BeginWrite() {
  TakeTicket();
  absl::MutexLock lock(&mutex_);
  writer_ = std::this_thread::get_id();
  // Writes that had begun may publish later. Cursors that are read from here on
  // may lack their steps, so these count into the window.
  steps_before_ticket_ = steps_in_flight_;
}

bool DrawnRows::HoldsAny() const {
  absl::MutexLock lock(&mutex_);
  return !held_.empty();
}

void DrawnRows::WaitForRows(AppendWindow window) {
  absl::MutexLock lock(&mutex_);
  const int64_t steps = window.steps + steps_before_ticket_;
  steps_in_flight_ += window.steps;
  rows_to_retire_ = window.rows();
  // No plan is held, and `cursors` may be empty.
  if (held_.empty()) return;
  // A division a row would take longer than all the rest.
  const int64_t capacity = window.lanes.capacity;
  const int64_t count = static_cast<int64_t>(window.cursors.size());
  const int64_t first = std::clamp<int64_t>(window.first_lane, 0, count);
  const int64_t num_lanes =
      std::clamp<int64_t>(window.num_lanes, 0, count - first);
  const Slot begin = first * capacity;
  const Slot end = begin + num_lanes * capacity;
  const absl::Span<Cursor> cursors =
      absl::MakeSpan(window.cursors).subspan(first, num_lanes);
  for (Cursor& cursor : cursors) cursor.written %= capacity;
  const auto is_overwritten = [&](Slot slot) {
    if (slot < begin || slot >= end) return false;
    const int64_t at = slot - begin;
    const int64_t lane = num_lanes == 1 ? 0 : at / capacity;
    // How many steps the lane takes before it writes the slot.
    const int64_t ahead = at - lane * capacity - cursors[lane].written;
    return (ahead < 0 ? ahead + capacity : ahead) < steps;
  };
  AwaitGathers([&] {
    mutex_.AssertReaderHeld();
    return !AnyHasRow(held_, is_overwritten);
  });
}

void DrawnRows::WaitForRows(absl::Span<const Slot> slots) {
  absl::MutexLock lock(&mutex_);
  rows_to_retire_ = static_cast<int64_t>(slots.size());
  if (held_.empty()) return;
  const absl::flat_hash_set<Slot> wanted(slots.begin(), slots.end());
  AwaitGathers([&] {
    mutex_.AssertReaderHeld();
    return !AnyHasRow(held_, [&](Slot slot) { return wanted.contains(slot); });
  });
}

void DrawnRows::WillRetire(int64_t rows) {
  absl::MutexLock lock(&mutex_);
  rows_to_retire_ = rows;
}

int64_t DrawnRows::BeforeOverwrite(absl::Span<const SlotRange> rows,
                                   int64_t done) {
  absl::MutexLock lock(&mutex_);
  if (held_.empty()) return std::numeric_limits<int64_t>::max();
  int64_t count = 0;
  absl::InlinedVector<int64_t, 8> before;  // Rows before those of each range.
  for (const SlotRange& range : rows) {
    before.push_back(count);
    count += range.count;
  }
  int64_t free = 0;
  const auto look = [&](Slot slot) {
    const auto next = std::upper_bound(
        rows.begin(), rows.end(), slot,
        [](Slot at, const SlotRange& range) { return at < range.first; });
    if (next == rows.begin()) return;
    const int64_t at = slot - (next - 1)->first;
    if (at >= (next - 1)->count) return;
    // Counted in the order in which the write goes; rows that it has passed are
    // below 0.
    const int64_t row = before[next - 1 - rows.begin()] + at - done;
    if (row >= 0) free = std::min(free, row);
  };
  for (;;) {
    free = count - done;
    for (const SamplePlan* plan : held_) ForEachRow(*plan, look);
    // The storage asks again behind these rows.
    if (free > 0) return free;
    AwaitGathers(
        [this, seen = releases_.load()] { return releases_.load() != seen; });
  }
}

void DrawnRows::WaitForAll() {
  absl::MutexLock lock(&mutex_);
  // The write may retire several times, and the ticket must not go on with the
  // first.
  keeps_ticket_ = true;
  AwaitGathers([this] {
    mutex_.AssertReaderHeld();
    return held_.empty();
  });
}

void DrawnRows::Retired(int64_t rows) {
  absl::MutexLock lock(&mutex_);
  // Events of other buffers' writes come on other threads and have no ticket
  // here.
  if (keeps_ticket_ || writer_ != std::this_thread::get_id()) return;
  rows_to_retire_ -= rows;
  if (rows_to_retire_ > 0) return;
  writer_ = std::thread::id();
  ++serving_;
}

void DrawnRows::EndWrite(int64_t steps) {
  absl::MutexLock lock(&mutex_);
  steps_in_flight_ -= steps;
  // The ticket mostly went on with the last row that was retired. It goes on
  // here after an error and after WaitForAll.
  if (writer_ != std::this_thread::get_id()) return;
  keeps_ticket_ = false;
  writer_ = std::thread::id();
  ++serving_;
}

}  // namespace rill::replay_internal
