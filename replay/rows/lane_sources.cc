// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/lane_sources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::replay_internal {
namespace {

std::string Text(LaneRange lanes) {
  return absl::StrCat("[", lanes.first, ", ", lanes.first + lanes.count, ")");
}

}  // namespace

LaneSources::LaneSources(const Storage* storage)
    : storage_(storage),
      lanes_(storage->lanes()),
      last_(new std::atomic<const Source*>[static_cast<size_t>(lanes_.count)]) {
  OnClear();
}

void LaneSources::OnClear() {
  for (int64_t i = 0; i < lanes_.count; ++i) last_[i] = nullptr;
  ++epoch_;
}

void LaneSources::OnAttach(const Lanes& /*lanes*/,
                           absl::Span<const Cursor> cursors) {
  OnClear();
  // An event with all live rows follows.
  is_attaching_ =
      std::any_of(cursors.begin(), cursors.end(),
                  [](const Cursor& cursor) { return cursor.written > 0; });
}

void LaneSources::OnWrite(const WriteEvent& event) {
  if (is_attaching_) {
    is_attaching_ = false;
    return;
  }
  if (writing_ == this || !event.is_append) return;
  for (const SlotRange& range : event.written) {
    last_[lanes_.LaneOf(range.first)].store(&other_, std::memory_order_relaxed);
  }
}

bool LaneSources::IsKnown(const Source& source) const {
  return source.epoch.load(std::memory_order_relaxed) ==
         epoch_.load(std::memory_order_relaxed);
}

bool LaneSources::AreOthers(LaneRange lanes, const Source& source) const {
  return std::any_of(&last_[lanes.first], &last_[lanes.first] + lanes.count,
                     [&](const std::atomic<const Source*>& last) {
                       const Source* const its =
                           last.load(std::memory_order_relaxed);
                       return its != &source && its != nullptr;
                     });
}

bool LaneSources::Follows(const Source& source, LaneRange lanes,
                          const WriteInfo& info) const {
  const bool is_next =
      info.sequence == 0 ||
      (IsKnown(source) ? info.sequence ==
                             source.sequence.load(std::memory_order_relaxed) + 1
                       : info.sequence != 1);
  return is_next && !AreOthers(lanes, source);
}

absl::StatusOr<ExtendResult> LaneSources::Run(LaneRange lanes, int64_t steps,
                                              const WriteInfo& info,
                                              WriteFn write, Source* source) {
  absl::StatusOr<ExtendResult> result;
  {
    // A writer may write to another buffer meanwhile.
    const auto done = absl::MakeCleanup(
        [before = std::exchange(writing_, this)] { writing_ = before; });
    result = write();
  }
  if (!result.ok()) return result;
  if (steps > lanes_.capacity) LookForDropped(steps, *result);
  if (info.sequence > 0) {
    source->sequence.store(info.sequence, std::memory_order_relaxed);
  }
  source->epoch.store(epoch_.load(std::memory_order_relaxed),
                      std::memory_order_relaxed);
  for (int64_t i = 0; i < lanes.count; ++i) {
    last_[lanes.first + i].store(source, std::memory_order_relaxed);
  }
  if (has_looked_.load(std::memory_order_relaxed)) return result;
  const int64_t writes = writes_.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t rows =
      rows_.fetch_add(result->rows_written, std::memory_order_relaxed) +
      result->rows_written;
  // Each source has had its turn by then.
  if (writes >= 64 + 8 * lanes_.count || rows >= lanes_.num_slots()) {
    LookForUnused();
  }
  return result;
}

absl::StatusOr<ExtendResult> LaneSources::Write(const Shape& shape,
                                                const WriteInfo& info,
                                                CutFn cut, WriteFn write) {
  const LaneRange lanes = {.first = info.first_lane,
                           .count = shape.rank() == 2 ? shape[0] : int64_t{1}};
  // The storage says what is wrong with such a batch, or nothing comes of it.
  if (lanes.first < 0 || lanes.first > lanes_.count || lanes.count < 1 ||
      lanes.count > lanes_.count - lanes.first || shape.num_elements() == 0) {
    return write();
  }
  const int64_t steps = shape.num_elements() / lanes.count;
  const Key key = {info.source, info.producer};
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = sources_.find(key);
    if (found != sources_.end() && Follows(found->second, lanes, info)) {
      return Run(lanes, steps, info, write, &found->second);
    }
  }
  absl::MutexLock lock(&mutex_);
  Source& source = sources_[key];
  if (!Follows(source, lanes, info)) {
    RILL_RETURN_IF_ERROR(CutFor(source, lanes, info, cut));
  }
  return Run(lanes, steps, info, write, &source);
}

absl::Status LaneSources::CutFor(const Source& source, LaneRange lanes,
                                 const WriteInfo& info, CutFn cut) {
  if (IsKnown(source) && AreOthers(lanes, source) && !has_told_turns_) {
    has_told_turns_ = true;
    LOG(WARNING) << "ReplayBuffer: lanes " << Text(lanes)
                 << ": several sources write there in turn (the last is "
                    "producer "
                 << info.producer
                 << "), and a trajectory is cut at each change; give each "
                    "lanes of its own (WriteInfo::first_lane)";
  }
  const absl::Status status = cut(lanes);
  if (info.source != 0 || !absl::IsFailedPrecondition(status)) return status;
  if (!has_told_no_cut_) {
    has_told_no_cut_ = true;
    LOG(WARNING) << "ReplayBuffer: lanes " << Text(lanes)
                 << ": several sources write there in turn, and samples join "
                    "their rows, as these cannot be cut: "
                 << status.message();
  }
  return absl::OkStatus();
}

void LaneSources::LookForDropped(int64_t steps, const ExtendResult& result) {
  if (result.rows_dropped == 0 || has_told_dropped_.exchange(true)) return;
  LOG(WARNING) << "ReplayBuffer: a batch of " << steps
               << " steps a lane is longer than a lane, which has "
               << lanes_.capacity << " slots: its oldest "
               << result.rows_dropped << " rows are not stored; make the "
               << "storage with a capacity of at least " << lanes_.count * steps
               << ", or write shorter batches";
}

void LaneSources::LookForUnused() {
  if (has_looked_.exchange(true)) return;
  const std::vector<Cursor> cursors = storage_->cursors();
  std::vector<LaneRange> unused;
  int64_t count = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(cursors.size()); ++i) {
    if (cursors[i].written > 0) continue;
    ++count;
    if (!unused.empty() && unused.back().first + unused.back().count == i) {
      ++unused.back().count;
    } else {
      unused.push_back({.first = i, .count = 1});
    }
  }
  if (unused.empty()) return;
  std::string text = Text(unused[0]);
  if (unused.size() > 1) absl::StrAppend(&text, " and others");
  LOG(WARNING) << "ReplayBuffer: lanes " << text << ": nobody has written "
               << count << " of " << lanes_.count << " lanes in "
               << writes_.load() << " writes, and their "
               << count * lanes_.capacity
               << " slots stay empty; make the storage with as many lanes as "
                  "its sources have, or give them other ones "
                  "(WriteInfo::first_lane)";
}

}  // namespace rill::replay_internal
