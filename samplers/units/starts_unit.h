// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_STARTS_UNIT_H_
#define RILL_SAMPLERS_UNITS_STARTS_UNIT_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/trajectories/weighed_set.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/slice_anchors.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// CheckAnchors of a unit that wants trajectories of `want_rows`, of which there
// are `num_anchors` anchors; `also` says what else they must be, `advice` what
// to do.
absl::Status CheckTrajectories(const TrajectoryIndex& index,
                               int64_t num_anchors, int64_t want_rows,
                               absl::string_view also,
                               absl::string_view advice);

// The common part of units whose anchors come from an index of trajectories:
// the index, its events and its part of the state. Index: SliceAnchors,
// PeriodicAnchors.
//
// Thread-safety: thread-compatible, as Unit.
// Cost: events as the index.
template <typename Index>
class IndexedUnit : public Unit {
 public:
  void SetListener(AnchorListener* listener) override {
    starts_.SetListener(listener);
  }

  void SaveState(SavedState* state) const override { starts_.Save(state); }
  absl::Status LoadState(const SavedState& state,
                         const ChangedOptions& changed) override {
    return starts_.Load(state, changed);
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    starts_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { starts_.OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { starts_.OnWrite(event); }
  void OnClear() override { starts_.OnClear(); }

 protected:
  template <typename Rule>
  IndexedUnit(UnitTraits traits, const Rule& rule)
      : Unit(std::move(traits)), starts_(rule) {}

  const Index& starts() const { return starts_; }
  const TrajectoryIndex& index() const { return starts_.index(); }

 private:
  Index starts_;
};

// The common part of units whose anchors are the starts of trajectories by a
// rule. Each unit decides which starts are picked and what they become.
//
// Thread-safety: thread-compatible, as Unit.
// Cost: events and anchors as SliceAnchors.
class StartsUnit : public IndexedUnit<SliceAnchors>, protected Anchors {
 public:
  const Anchors& anchors() const override { return *this; }

 protected:
  StartsUnit(UnitTraits traits, const StartRule& rule)
      : IndexedUnit(std::move(traits), rule) {}

  bool Contains(Slot slot) const override { return starts().Contains(slot); }

  // Those with starts.
  const WeighedSet& trajectories() const { return starts().trajectories(); }

  int64_t StartsOf(TrajectoryIndex::Handle trajectory) const {
    return starts().CountOf(trajectory);
  }

  absl::Status CheckStarts(int64_t want_rows, absl::string_view also,
                           absl::string_view advice) const {
    return CheckTrajectories(index(), size(), want_rows, also, advice);
  }
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_STARTS_UNIT_H_
