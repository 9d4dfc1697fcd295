// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_PERIODIC_ANCHORS_H_
#define RILL_SAMPLERS_UNITS_PERIODIC_ANCHORS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/trajectories/weighed_set.h"
#include "rill/samplers/units/trajectory_shares.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// Every `period`-th row of a trajectory, counted from the trajectory's own
// first step, that has enough live rows around it.
//
// Eviction does not move the count: where rows went from the front, they are
// still counted. A trajectory whose beginning cannot be known counts from the
// first row that was seen. Such a one was there before this and its state is
// not loaded, or its beginning was part of a batch longer than the ring. Or it
// is the rest of one that lost all its rows while others wrote to its lane.
// Where a write in place splits a trajectory, the second part counts from its
// own first row.
//
// Thread-safety: thread-compatible.
// Cost: as SliceAnchors, and 17 bytes a trajectory whose count is not 0 at its
//   first live row; At and Contains O(log16 trajectories + log pieces). With a
//   period above 1 the listener receives each anchor by itself. With a
//   listener, a write in place where trajectories change is then O(anchors of
//   its lanes x log pieces), and Load that of all lanes.
class PeriodicAnchors : public WriteObserver, public Anchors {
 public:
  struct Rule {
    int64_t period = 1;  // >= 1.
    // Rows that a trajectory has before an anchor, and behind it, at least.
    int64_t before = 0;
    int64_t after = 0;
  };

  explicit PeriodicAnchors(const Rule& rule) : rule_(rule), index_({}) {}

  // Set once, before the first event. Not owned.
  void SetListener(AnchorListener* listener) { listener_ = listener; }

  const TrajectoryIndex& index() const { return index_; }

  int64_t size() const override { return set_.total(); }
  Slot At(int64_t n) const override;
  bool Contains(Slot slot) const override;
  // Each with the same probability.
  Slot Pick(const Rng::Block& bits) const override {
    return At(BoundedInt(LowBits64(bits), size()));
  }

  // A part of the sampler's state, as Unit's.
  void Save(SavedState* state) const;
  absl::Status Load(const SavedState& state, const ChangedOptions& changed);
  // Reads over what was saved.

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  using Handle = TrajectoryIndex::Handle;
  using Share = TrajectoryShares::Share;

  // How many steps of a trajectory came before its first live row, modulo the
  // period.
  int64_t PhaseOf(Handle trajectory) const;
  // The first offset >= `offset` whose step is a multiple of the period.
  int64_t NextOffset(int64_t offset, int64_t phase) const;
  int64_t Count(int64_t rows, int64_t phase) const;
  // For a trajectory all of whose rows have just been appended.
  int64_t PhaseOfNew(const TrajectoryIndex::Trajectory& trajectory) const;
  // Takes note of a trajectory of so many rows; none: it is gone.
  void Set(Handle trajectory, int64_t rows, int64_t phase);

  // The anchors among the offsets [begin, end) of a trajectory.
  void AppendAnchors(Handle trajectory, int64_t begin, int64_t end,
                     std::vector<SlotRange>* ranges) const;
  std::vector<Handle> TrajectoriesOf(absl::Span<const int64_t> lanes) const;
  // Sorted.
  std::vector<SlotRange> AnchorsOf(absl::Span<const Handle> trajectories) const;
  std::vector<int64_t> AllLanes() const;

  void Evict(const WriteEvent& event);
  void WriteInPlace(const WriteEvent& event);
  absl::Status ReadPhases(const SavedState& state,
                          const ChangedOptions& changed);
  absl::Status ReadOrder(const SavedState& state,
                         const ChangedOptions& changed);
  // Those of `before` that are not in `after` or were written are removed, and
  // the other way round. All are sorted and without overlaps.
  void TellOfDifference(absl::Span<const SlotRange> before,
                        absl::Span<const SlotRange> after,
                        absl::Span<const SlotRange> written);
  void Tell();

  // An open trajectory that lost its last row, which was the newest of its
  // lane: the next row of the lane may go on with it.
  struct Tail {
    std::optional<int64_t> id;
    int64_t phase = 0;  // Of its next row.
  };

  const Rule rule_;
  TrajectoryIndex index_;
  WeighedSet set_;  // Trajectories with anchors, by how many.
  absl::flat_hash_map<Handle, int64_t> phases_;  // Those that are not 0.
  absl::flat_hash_map<int64_t, Tail> tails_;     // By lane.
  AnchorListener* listener_ = nullptr;
  // Memory of events.
  TrajectoryShares shares_;
  std::vector<SlotRange> removed_, added_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_PERIODIC_ANCHORS_H_
