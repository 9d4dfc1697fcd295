// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/testing/watched_storage.h"

namespace rill {

void WatchedStorage::HoldReads() {
  absl::MutexLock lock(&mutex_);
  is_holding_ = true;
  cursor_calls_ = 0;
}

void WatchedStorage::LetReads() {
  absl::MutexLock lock(&mutex_);
  is_holding_ = false;
}

void WatchedStorage::AwaitHeldReads(int64_t reads) const {
  absl::MutexLock lock(&mutex_);
  const auto are_held = [&] {
    mutex_.AssertReaderHeld();
    return held_ == reads;
  };
  mutex_.Await(absl::Condition(&are_held));
}

void WatchedStorage::AwaitCursorCalls(int64_t calls) const {
  absl::MutexLock lock(&mutex_);
  const auto were_made = [&] {
    mutex_.AssertReaderHeld();
    return cursor_calls_ >= calls;
  };
  mutex_.Await(absl::Condition(&were_made));
}

std::vector<WatchedStorage::ReadCall> WatchedStorage::TakeReads() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(reads_, {});
}

std::vector<Cursor> WatchedStorage::cursors() const {
  {
    absl::MutexLock lock(&mutex_);
    ++cursor_calls_;
  }
  return inner_->cursors();
}

void WatchedStorage::Note(absl::Span<const Slot> slots,
                          std::vector<std::string> keys) const {
  absl::MutexLock lock(&mutex_);
  reads_.push_back({{slots.begin(), slots.end()}, std::move(keys)});
  ++held_;
  const auto may_go = [this] {
    mutex_.AssertReaderHeld();
    return !is_holding_;
  };
  mutex_.Await(absl::Condition(&may_go));
  --held_;
}

absl::Status WatchedStorage::ReadKeys(
    absl::Span<const Slot> slots,
    std::optional<absl::Span<const std::string>> keys, TensorDict* out) const {
  if (keys.has_value()) {
    Note(slots, {keys->begin(), keys->end()});
    return inner_->ReadLeaves(slots, *keys, out);
  }
  std::vector<std::string> all;
  const TensorDictSpec rows = spec();
  for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
    all.push_back(leaf.key);
  }
  Note(slots, std::move(all));
  return inner_->Read(slots, out);
}

absl::Status WatchedStorage::ReadInto(
    absl::Span<const Slot> slots, absl::Span<const size_t> leaves,
    absl::Span<const BoundLeaf> places) const {
  const TensorDictSpec rows = spec();
  std::vector<std::string> keys;
  for (const size_t leaf : leaves) keys.push_back(rows.leaves()[leaf].key);
  Note(slots, std::move(keys));
  return inner_->ReadInto(slots, leaves, places);
}

}  // namespace rill
