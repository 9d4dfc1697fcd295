// SPDX-License-Identifier: Apache-2.0
// Bytes decide which rows share their next/K, so every write keeps one
// invariant. A place says kInSuccessor only while K of the slot behind has the
// bytes that the row is to read as. next_rows.h argues why readers beside a
// writer are safe.
#include "rill/storage/dedup/next_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "rill/base/status_macros.h"
#include "rill/device/row_copy.h"
#include "rill/storage/sharing/epoch_windows.h"

namespace rill::storage_internal {
namespace {

const LeafBatch* Find(absl::Span<const LeafBatch> leaves, size_t leaf) {
  for (const LeafBatch& candidate : leaves) {
    if (candidate.leaf == leaf) return &candidate;
  }
  return nullptr;
}

// How a slot lies in its lane. Divisions of 32 bits take a third of the time.
int64_t PositionIn(const Lanes& lanes, Slot slot) {
  if (lanes.count == 1) return slot;
  if (lanes.num_slots() <= std::numeric_limits<uint32_t>::max()) {
    return static_cast<uint32_t>(slot) % static_cast<uint32_t>(lanes.capacity);
  }
  return lanes.PositionOf(slot);
}

}  // namespace

void AddPredecessors(const Lanes& lanes, std::vector<SlotRange>* ranges) {
  const size_t given = ranges->size();
  for (size_t i = 0; i < given; ++i) {
    const SlotRange range = (*ranges)[i];
    const int64_t first_lane = lanes.LaneOf(range.first);
    const int64_t last_lane = lanes.LaneOf(range.first + range.count - 1);
    const bool is_at_start = lanes.PositionOf(range.first) == 0;
    ranges->push_back(
        {is_at_start ? lanes.SlotOf(first_lane + 1, 0) - 1 : range.first - 1,
         1});
    // A range of slots in no order may reach over several lanes; of the first
    // and the last of them it has a part.
    // Lanes between are in the range from end to end.
    if (last_lane != first_lane) {
      ranges->push_back({lanes.SlotOf(last_lane + 1, 0) - 1, 1});
    }
  }
  JoinRanges(ranges);
}

absl::StatusOr<std::unique_ptr<NextRows>> NextRows::Create(
    const RowLayout& layout, std::byte* rows) {
  const int64_t num_slots = layout.lanes().num_slots();
  std::unique_ptr<NextRows> next(new NextRows(layout, rows));
  for (const NextPair& found : layout.next_pairs()) {
    Pair pair = {.leaf = found.leaf,
                 .next = found.next,
                 .width = layout.leaf_bytes(found.leaf),
                 .field = layout.fields()[found.leaf]};
    // The rows take more, so this does not overflow.
    RILL_ASSIGN_OR_RETURN(
        pair.buffer,
        Buffer::Allocate(num_slots * static_cast<int64_t>(sizeof(int32_t))));
    pair.places = reinterpret_cast<int32_t*>(pair.buffer->data());
    std::fill_n(pair.places, num_slots, kNowhere);
    pair.cells = std::make_unique<CellPool>(pair.width, num_slots);
    next->pairs_.push_back(std::move(pair));
  }
  return next;
}

Slot NextRows::SlotAfter(Slot slot) const {
  const bool is_last = PositionIn(lanes_, slot) == lanes_.capacity - 1;
  return is_last ? slot + 1 - lanes_.capacity : slot + 1;
}

Slot NextRows::SlotBefore(Slot slot) const {
  return PositionIn(lanes_, slot) == 0 ? slot - 1 + lanes_.capacity : slot - 1;
}

absl::Status NextRows::PlanAppend(absl::Span<const Slot> slots,
                                  int64_t num_lanes, int64_t steps,
                                  absl::FunctionRef<Steps(size_t leaf)> batch) {
  planned_ = 0;
  for (Pair& pair : pairs_) {
    // The batch is compared once, before it is written: a window sees only a
    // part of it. `own` is an upper bound of the cells that get taken at a
    // time. These are for rows that differ, the last row of each lane and of a
    // window, and the row before each lane's first, whose K goes.
    const Steps values = batch(pair.leaf);
    const Steps nexts = batch(pair.next);
    pair.is_shared.assign(slots.size(), 0);
    int64_t own = 1;  // The last row of a window, until the next one.
    for (int64_t lane = 0; lane < num_lanes; ++lane) {
      const std::byte* value = values.data + lane * values.lane_stride;
      const std::byte* next = nexts.data + lane * nexts.lane_stride;
      uint8_t* const is_shared = pair.is_shared.data() + lane * steps;
      for (int64_t step = 0; step + 1 < steps; ++step) {
        value += values.step_stride;
        is_shared[step] = std::memcmp(next, value, pair.width) == 0;
        own += is_shared[step] == 0 ? 1 : 0;
        next += nexts.step_stride;
      }
      ++own;  // The last row of the lane.
      own += pair.places[SlotBefore(slots[lane * steps])] == kInSuccessor;
    }
    RILL_RETURN_IF_ERROR(pair.cells->Reserve(own));
  }
  planned_ = slots.size();
  done_ = 0;
  return absl::OkStatus();
}

absl::Status NextRows::PlanOverwrite(
    absl::Span<const Slot> slots,
    absl::FunctionRef<bool(size_t leaf)> has_leaf) {
  planned_ = 0;
  for (Pair& pair : pairs_) {
    // No other rows than these get a cell.
    const bool has_value = has_leaf(pair.leaf);
    const bool has_next = has_leaf(pair.next);
    if (!has_value && !has_next) continue;
    int64_t own = 0;
    for (const Slot slot : slots) {
      own += has_next && pair.places[slot] < 0;
      own += has_value && pair.places[SlotBefore(slot)] < 0;
    }
    RILL_RETURN_IF_ERROR(pair.cells->Reserve(own));
  }
  return absl::OkStatus();
}

absl::Status NextRows::Own(Slot slot, const std::byte* value, Pair* pair) {
  int32_t& place = pair->places[slot];
  if (place < 0) {
    RILL_ASSIGN_OR_RETURN(place, pair->cells->Take());
  }
  std::memcpy(pair->cells->At(place), value, pair->width);
  return absl::OkStatus();
}

void NextRows::Share(Slot slot, Pair* pair) {
  int32_t& place = pair->places[slot];
  if (place >= 0) pair->cells->GiveBack(place);
  place = kInSuccessor;
}

absl::Status NextRows::BeforeWrite(absl::Span<const Slot> slots,
                                   absl::Span<const LeafBatch> leaves) {
  for (Pair& pair : pairs_) {
    if (Find(leaves, pair.leaf) == nullptr) continue;
    // First the rows whose next/K is replaced: they give their cells back. A
    // predecessor among them needs no copy of a K that it is about to lose.
    if (Find(leaves, pair.next) != nullptr) {
      for (const Slot slot : slots) {
        Share(slot, &pair);
        pair.places[slot] = kToCome;
      }
    }
    for (const Slot slot : slots) {
      const Slot before = SlotBefore(slot);
      if (pair.places[before] != kInSuccessor) continue;
      // The old K is still there and is what `before` has to read as.
      RILL_RETURN_IF_ERROR(Own(before, StoredAt(pair, slot), &pair));
    }
  }
  return absl::OkStatus();
}

absl::Status NextRows::PlaceNext(absl::Span<const Slot> slots,
                                 const LeafBatch& values, Pair* pair) {
  const std::byte* value = values.data;
  for (size_t i = 0; i < slots.size(); ++i, value += values.stride) {
    const Slot slot = slots[i];
    bool is_shared;
    if (planned_ > 0) {
      // Rows of a later write are not there yet.
      is_shared = i + 1 < slots.size() && pair->is_shared[done_ + i] != 0;
    } else {
      const Slot after = SlotAfter(slot);
      // Bytes of a slot that was never written are not initialised.
      is_shared = pair->places[after] != kNowhere &&
                  std::memcmp(value, StoredAt(*pair, after), pair->width) == 0;
    }
    if (is_shared) {
      Share(slot, pair);
    } else {
      RILL_RETURN_IF_ERROR(Own(slot, value, pair));
    }
  }
  return absl::OkStatus();
}

absl::Status NextRows::AfterWrite(absl::Span<const Slot> slots,
                                  absl::Span<const LeafBatch> leaves) {
  for (Pair& pair : pairs_) {
    if (const LeafBatch* const values = Find(leaves, pair.next)) {
      RILL_RETURN_IF_ERROR(PlaceNext(slots, *values, &pair));
    }
    if (Find(leaves, pair.leaf) == nullptr) continue;
    for (const Slot slot : slots) {
      const Slot before = SlotBefore(slot);
      // A copy that equals the new K is given back. The newest row of a lane so
      // shares as soon as its successor is there.
      const int32_t place = pair.places[before];
      if (place >= 0 && std::memcmp(pair.cells->At(place), StoredAt(pair, slot),
                                    pair.width) == 0) {
        Share(before, &pair);
      }
    }
  }
  if (planned_ > 0) {
    done_ += slots.size();
    if (done_ >= planned_) planned_ = 0;
  }
  return absl::OkStatus();
}

void NextRows::Read(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> leaves) const {
  thread_local std::vector<int64_t> offsets;
  for (const Pair& pair : pairs_) {
    const LeafBatch* const to = Find(leaves, pair.next);
    if (to == nullptr) continue;
    offsets.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const int32_t place = pair.places[slots[i]];
      const std::byte* const from = place >= 0
                                        ? pair.cells->At(place)
                                        : StoredAt(pair, SlotAfter(slots[i]));
      // One gather for both kinds of places: cells are reached by offsets that
      // lead out of the table. As integers, since pointers into two buffers
      // have no difference.
      offsets[i] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) -
                                        reinterpret_cast<uintptr_t>(rows_));
    }
    const RowColumn column = {.table = rows_,
                              .table_stride = 1,
                              .batch = to->data,
                              .batch_stride = to->stride,
                              .width = pair.width,
                              .past_caches = to->past_caches};
    GatherRowsOnHost(absl::MakeConstSpan(&column, 1), offsets);
  }
}

void NextRows::Clear() {
  planned_ = 0;
  for (Pair& pair : pairs_) {
    std::fill_n(pair.places, lanes_.num_slots(), kNowhere);
    pair.cells->GiveBackAll();
  }
}

int64_t NextRows::memory_bytes() const {
  int64_t bytes = 0;
  for (const Pair& pair : pairs_) {
    bytes += pair.buffer->size_bytes() + pair.cells->bytes();
  }
  return bytes;
}

int64_t NextRows::saved_bytes() const {
  int64_t bytes = 0;
  for (const Pair& pair : pairs_) bytes += lanes_.num_slots() * pair.width;
  return bytes - memory_bytes();
}

}  // namespace rill::storage_internal
