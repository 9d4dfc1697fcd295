// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/conformance/storage_oracle.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "rill/storage/conformance/conformance_rows.h"

namespace rill {

StorageOracle::StorageOracle(const Lanes& lanes)
    : lanes_(lanes), cursors_(lanes.count), ids_(lanes.num_slots()) {}

void StorageOracle::Extend(int64_t first_lane, int64_t num_lanes, int64_t steps,
                           absl::Span<const int64_t> ids) {
  const size_t leaves = ConformanceSpec().leaves().size();
  for (int64_t lane = 0; lane < num_lanes; ++lane) {
    for (int64_t step = 0; step < steps; ++step) {
      Cursor& cursor = cursors_[first_lane + lane];
      const Slot slot =
          lanes_.SlotOf(first_lane + lane, cursor.written % lanes_.capacity);
      ids_[slot] = std::vector<int64_t>(leaves, ids[lane * steps + step]);
      ++cursor.written;
    }
  }
}

void StorageOracle::WriteAt(absl::Span<const Slot> slots,
                            absl::Span<const size_t> leaves,
                            absl::Span<const int64_t> ids) {
  for (size_t i = 0; i < slots.size(); ++i) {
    for (const size_t leaf : leaves) (*ids_[slots[i]])[leaf] = ids[i];
  }
}

void StorageOracle::Clear() {
  std::fill(cursors_.begin(), cursors_.end(), Cursor());
  std::fill(ids_.begin(), ids_.end(), std::nullopt);
}

StorageOracle StorageOracle::WithLaneCapacity(int64_t capacity) const {
  StorageOracle other({.count = lanes_.count, .capacity = capacity});
  other.cursors_ = cursors_;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const int64_t written = cursors_[lane].written;
    const int64_t steps = std::min(capacity, lanes_.capacity);
    for (int64_t step = std::max<int64_t>(0, written - steps); step < written;
         ++step) {
      other.ids_[other.lanes_.SlotOf(lane, step % capacity)] =
          ids_[lanes_.SlotOf(lane, step % lanes_.capacity)];
    }
  }
  return other;
}

std::vector<Slot> StorageOracle::LiveSlots() const {
  std::vector<Slot> slots;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const int64_t written = cursors_[lane].written;
    for (int64_t step = std::max<int64_t>(0, written - lanes_.capacity);
         step < written; ++step) {
      const Slot slot = lanes_.SlotOf(lane, step % lanes_.capacity);
      if (IsLive(slot)) slots.push_back(slot);
    }
  }
  return slots;
}

TensorDict StorageOracle::Rows(absl::Span<const Slot> slots) const {
  const Shape batch_shape = {static_cast<int64_t>(slots.size())};
  TensorDict rows(batch_shape);
  const auto& leaves = ConformanceSpec().leaves();
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    std::vector<int64_t> ids;
    for (const Slot slot : slots) ids.push_back(Id(slot, leaf));
    const absl::Status status =
        rows.Set(leaves[leaf].key, ConformanceLeaf(leaf, batch_shape, ids));
    EXPECT_TRUE(status.ok()) << status;
  }
  return rows;
}

}  // namespace rill
