// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_ROWS_UNIT_H_
#define RILL_SAMPLERS_UNITS_ROWS_UNIT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/unit.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// The common part of units whose items are single rows that need others of
// their trajectories beside them. It has the anchors of MakeTransitionUnit, so
// that the draws are those of transitions, and an index of all trajectories.
// Each unit decides what the context holds.
//
// Thread-safety: thread-compatible, as Unit.
// Cost: events as TrajectoryIndex, picks as MakeTransitionUnit.
class RowsUnit : public Unit {
 public:
  const Anchors& anchors() const override { return rows_->anchors(); }
  void SetListener(AnchorListener* listener) override {
    rows_->SetListener(listener);
  }
  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    return batch_size;
  }
  absl::Status CheckAnchors() const override { return rows_->CheckAnchors(); }

  void SaveState(SavedState* state) const override { index_.Save(state); }
  absl::Status LoadState(const SavedState& state,
                         const ChangedOptions& changed) override {
    return index_.Load(state, changed);
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    index_.OnAttach(lanes, cursors);
    rows_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override {
    index_.OnRetire(event);
    rows_->OnRetire(event);
  }
  void OnWrite(const WriteEvent& event) override {
    index_.OnWrite(event);
    rows_->OnWrite(event);
  }
  void OnClear() override {
    index_.OnClear();
    rows_->OnClear();
  }

 protected:
  explicit RowsUnit(UnitTraits traits)
      : Unit(std::move(traits)), index_({}), rows_(MakeTransitionUnit()) {}

  const TrajectoryIndex& index() const { return index_; }

  // The place of a row in its trajectory.
  struct Row {
    TrajectoryIndex::Handle trajectory = 0;
    int64_t offset = 0;  // 0: the first live row.
    int64_t rows = 0;    // Of the trajectory.
  };
  // `slot` is live.
  Row RowOf(Slot slot) const {
    const TrajectoryIndex::Place place = *index_.Find(slot);
    return {.trajectory = place.trajectory,
            .offset = place.offset,
            .rows = index_.Get(place.trajectory).rows};
  }

 private:
  TrajectoryIndex index_;
  const std::unique_ptr<Unit> rows_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_ROWS_UNIT_H_
