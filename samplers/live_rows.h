// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_LIVE_ROWS_H_
#define RILL_SAMPLERS_LIVE_ROWS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/slots/generations.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// The facts about a storage that every sampler needs: which slots are live and
// in which generation. A sampler holds one under its mutex, hands it the events
// and numbers the live rows 0 .. size() - 1 through it.
//
// Thread-safety: thread-compatible.
// Cost: an event O(rows written), and memory for pages of generations where
//   those of neighbours come to differ (slots/slot_array.h); At O(log lanes),
//   free of allocation.
class LiveRows : public WriteObserver {
 public:
  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  int64_t size() const { return live_.size(); }
  const Lanes& lanes() const { return live_.lanes(); }
  bool IsLive(Slot slot) const { return live_.Contains(slot); }
  const Generations& generations() const { return generations_; }
  // The n-th live row with weight 1, n in [0, size()), lane after lane, oldest
  // first. A slot that is being written in place has its next generation: a
  // read waits for that write.
  Draw At(int64_t n) const;
  // The generation of a live slot, as in At.
  int64_t GenerationOf(Slot slot) const {
    return AfterWrites(generations_.Get(slot));
  }
  // Sets the generation of each draw, wherever the draws lie:
  // GenerationOf(slot).
  void SetGenerations(absl::Span<Draw> draws) const;
  // generations[i] = GenerationOf(slots[i]), quick where slots come in runs.
  void GenerationsOf(absl::Span<const Slot> slots, int64_t* generations) const;
  // Generations::GetMany: those of now, negative where no row is.
  void GetGenerations(absl::Span<const Slot> slots,
                      int64_t* generations) const {
    generations_.GetMany(slots, generations);
  }
  // The row that was drawn is still there.
  bool IsCurrent(const Draw& draw) const {
    return generations_.IsCurrent(draw);
  }

  // A part of a sampler's state. Load checks that it belongs to the rows that
  // are live now, else DATA_LOSS or FAILED_PRECONDITION. Restore takes its
  // result once the rest of the state is known to be good. Cost:
  // Save O(slots that were ever written), 16 bytes a run of equal generations;
  // Load O(live rows + runs), and O(slots / 4096) where it does not refuse.
  void Save(SavedState* state) const;
  absl::StatusOr<Generations> Load(const SavedState& state) const;
  void Restore(Generations generations);
  // FAILED_PRECONDITION where what was saved is of other lanes than these.
  static absl::Status CheckLanes(const SavedState& state, const Lanes& lanes);

 private:
  // Negative where a write is in flight, which makes it this one.
  static int64_t AfterWrites(int64_t generation) {
    return generation < 0 ? ~generation : generation;
  }

  LiveSlots live_;
  Generations generations_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_LIVE_ROWS_H_
