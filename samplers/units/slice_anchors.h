// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_SLICE_ANCHORS_H_
#define RILL_SAMPLERS_UNITS_SLICE_ANCHORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/trajectory_shares.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// The starts of a trajectory index by one rule. A listener is notified as they
// come and go. A row becomes one when enough rows of its trajectory follow. It
// ceases when it is evicted, when a write in place takes those away, or (a rule
// with `needs_beginning`) when the beginning is cut.
//
// Thread-safety: thread-compatible.
// Cost: with a listener O(log) a piece that an append writes or evicts; a write
//   in place O(log) a row, or O(pieces) of its lanes where trajectories change.
//   Without one that of the index alone, which learns of rows that an append
//   retires when somebody looks, or with those that it writes.
class SliceAnchors : public WriteObserver {
 public:
  explicit SliceAnchors(const StartRule& rule)
      : rule_(rule), index_(std::vector<StartRule>{rule}) {}

  void SetListener(AnchorListener* listener) { listener_ = listener; }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  const TrajectoryIndex& index() const {
    Settle();
    return index_;
  }
  // The trajectories that have anchors, weighted by how many; anchors are
  // always their first rows.
  const WeighedSet& trajectories() const { return index().starts(0); }
  bool Contains(Slot slot) const;
  // How many anchors a trajectory has; looks at nothing but what tells of it.
  int64_t CountOf(TrajectoryIndex::Handle trajectory) const {
    const TrajectoryIndex::Trajectory it = index().Get(trajectory);
    return rule_.Count(it.rows, it.is_cut, it.is_closed);
  }

  void Save(SavedState* state) const { index().Save(state); }
  absl::Status Load(const SavedState& state, const ChangedOptions& changed);

 private:
  using Handle = TrajectoryIndex::Handle;
  using Share = TrajectoryShares::Share;

  void CollectAnchors(Handle trajectory, int64_t begin, int64_t end,
                      std::vector<SlotRange>* ranges) const;
  void Evict(const WriteEvent& event);
  void TellOfNewRows(const WriteEvent& event);
  void WriteInPlace(const WriteEvent& event);
  // The anchors of lanes [begin, end) / of the rows, sorted by slot.
  std::vector<SlotRange> AnchorsOfLanes(absl::Span<const int64_t> lanes) const;
  std::vector<SlotRange> AnchorsAmong(absl::Span<const SlotRange> slots) const;
  void TellOfDifference(const std::vector<SlotRange>& before,
                        const std::vector<SlotRange>& after);
  void Tell();

  // Tells the index what the last append has retired.
  void Settle() const {
    if (!retired_.empty()) TellRetired();
  }
  void TellRetired() const;
  void ReadBlocks(absl::Span<const SlotRange> ranges,
                  absl::Span<const LaneBlock> known,
                  std::vector<LaneBlock>* all) const;

  StartRule rule_;
  mutable TrajectoryIndex index_;
  // Rows that an append has retired and the index still has. Without a listener
  // only.
  mutable std::vector<LaneBlock> retired_;
  std::vector<LaneBlock> written_;  // Memory of OnWrite.
  AnchorListener* listener_ = nullptr;
  // Memory of events.
  TrajectoryShares shares_;
  std::vector<SlotRange> removed_, added_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_SLICE_ANCHORS_H_
