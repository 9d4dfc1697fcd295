// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/live_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::samplers_internal {

void LiveRows::OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) {
  // Attached again, all rows count as new ones: what was drawn is stale.
  // Generations go on counting over a load of the storage. Had they begun anew,
  // a draw from before could fit a row that came after.
  const bool is_again = lanes == live_.lanes();
  live_.OnAttach(lanes, cursors);
  if (is_again) {
    generations_.OnClear();
  } else {
    generations_.OnAttach(lanes, cursors);
  }
}

void LiveRows::OnRetire(const WriteEvent& event) {
  live_.OnRetire(event);
  generations_.OnRetire(event);
}

void LiveRows::OnWrite(const WriteEvent& event) {
  live_.OnWrite(event);
  generations_.OnWrite(event);
}

void LiveRows::OnClear() {
  live_.OnClear();
  generations_.OnClear();
}

Draw LiveRows::At(int64_t n) const {
  const Slot slot = live_.Nth(n);
  return {.slot = slot, .generation = GenerationOf(slot), .weight = 1.0f};
}

void LiveRows::SetGenerations(absl::Span<Draw> draws) const {
  generations_.GetAnywhere(
      draws.size(), [draws](size_t i) { return draws[i].slot; },
      [draws](size_t i, int64_t generation) {
        draws[i].generation = AfterWrites(generation);
      });
}

void LiveRows::GenerationsOf(absl::Span<const Slot> slots,
                             int64_t* generations) const {
  generations_.GetMany(slots, generations);
  for (size_t i = 0; i < slots.size(); ++i) {
    generations[i] = AfterWrites(generations[i]);
  }
}

void LiveRows::Save(SavedState* state) const {
  // Generations are equal over long stretches of a ring, so runs of them take
  // little. Slots that were never written have no memory and are jumped over.
  std::vector<int64_t> runs;  // Length, generation.
  const auto add = [&runs](int64_t length, int64_t value) {
    if (length == 0) return;
    if (runs.empty() || runs.back() != value) {
      runs.insert(runs.end(), {0, value});
    }
    runs[runs.size() - 2] += length;
  };
  const int64_t num_slots = generations_.num_slots();
  for (Slot slot = 0; slot < num_slots; ++slot) {
    const Slot written = generations_.NextWritten(slot);
    add(written - slot, -1);
    slot = written;
    if (slot < num_slots) add(1, generations_.Get(slot));
  }
  state->Set("lanes", lanes().count);
  state->Set("capacity", lanes().capacity);
  state->Set("generations", std::move(runs));
}

absl::Status LiveRows::CheckLanes(const SavedState& state, const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const auto count, state.Get<int64_t>("lanes"));
  RILL_ASSIGN_OR_RETURN(const auto capacity, state.Get<int64_t>("capacity"));
  if (lanes == Lanes{.count = count, .capacity = capacity}) {
    return absl::OkStatus();
  }
  return state.DoesNotFit(
      absl::StrCat("lanes: got ", count, " of ", capacity, " slots, want ",
                   lanes.count, " of ", lanes.capacity,
                   "; load into a storage of the same lanes and capacity"));
}

absl::StatusOr<Generations> LiveRows::Load(const SavedState& state) const {
  RILL_RETURN_IF_ERROR(CheckLanes(state, lanes()));
  RILL_ASSIGN_OR_RETURN(const auto saved, state.Ints("generations", 2));
  const int64_t num_slots = generations_.num_slots();
  std::vector<std::pair<SlotRange, int64_t>> runs;
  int64_t covered = 0;
  int64_t stored = 0;
  for (size_t run = 0; run < saved.size(); run += 2) {
    const int64_t length = saved[run];
    const int64_t value = saved[run + 1];
    const int64_t room = num_slots - covered;
    if (length < 1 || length > room) {
      return state.Damaged(absl::StrCat("run ", run / 2,
                                        " of generations: got ", length,
                                        " slots, want [1, ", room, "]"));
    }
    if (value > kMaxWritten || value < -kMaxWritten) {
      return state.Damaged(absl::StrCat("run ", run / 2,
                                        " of generations: got ", value,
                                        ", want up to ", kMaxWritten));
    }
    // Slots that were never written are so already.
    if (value != -1) {
      runs.push_back({{.first = covered, .count = length}, value});
    }
    if (value >= 0) stored += length;
    covered += length;
  }
  if (covered != num_slots) {
    return state.Damaged(
        absl::StrCat("generations: got ", covered, " slots, want ", num_slots));
  }
  // First, so that a run of a whole ring of few rows is not gone through.
  if (stored != live_.size()) {
    return state.DoesNotFit(absl::StrCat(
        "rows: got the state of ", stored, ", want that of ", live_.size(),
        "; load after the storage has got the rows of the save"));
  }
  Generations loaded;
  loaded.OnAttach(lanes(), {});
  for (const auto& [slots, value] : runs) {
    for (Slot slot = slots.first;
         value >= 0 && slot < slots.first + slots.count; ++slot) {
      if (live_.Contains(slot)) continue;
      return state.DoesNotFit(absl::StrCat(
          "slot ", slot,
          ": got the state of a stored row, want that of a missing one; load "
          "after the storage has got the rows of the save"));
    }
    loaded.Restore(slots, value);
  }
  return loaded;
}

void LiveRows::Restore(Generations generations) {
  generations_ = std::move(generations);
}

}  // namespace rill::samplers_internal
