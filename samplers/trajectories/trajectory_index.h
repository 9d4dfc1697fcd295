// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_INDEX_H_
#define RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/length_counts.h"
#include "rill/samplers/trajectories/piece_scanner.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_runs.h"
#include "rill/samplers/trajectories/weighed_set.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// Which live rows belong to one trajectory, and in which order, kept up to date
// by a storage's writes.
//
// The rows of a lane are taken in the order of their steps; where the ring
// wraps does not matter. A row belongs to the open trajectory of its lane that
// has the same id, or opens one. A row with an end flag closes its trajectory,
// so that the next row with that id opens another. Where writes carry no ids,
// all rows count as of one id. Several producers may alternate in a lane: a
// trajectory then lies there in several pieces. Eviction takes rows from the
// front; the rest stays a trajectory, which is cut. A write in place that
// changes ends or ids splits and joins trajectories, as if the rows had been
// appended so.
//
// For each start rule that it is made with it keeps the trajectories that have
// a start, ready to be drawn uniformly or by how many. The order of these sets
// is a pure function of the history of events.
//
// Thread-safety: thread-compatible.
// Cost: an append looks at each flag and id, 64 bytes at a time, and does
//   O(log16 trajectories) a piece; eviction does that for a piece that loses
//   rows. OnAppend does not for full lanes in the middle of a trajectory. A
//   write in place is free where it tells neither ends nor ids, O(log pieces) a
//   row where they are as before, else O(pieces of the lane from there on). At
//   and Find are O(log pieces).
//   Limits: 2^31 - 1 lanes and trajectories at a time (handles and lanes are
//   int32), 2^32 - 1 pieces of a lane; not checked.
//   Memory: 40 bytes a trajectory and 17 for each rule (25 where it keeps the
//   longest), 10 more while it is open and has an id. A piece takes 16.5, a row
//   nothing. Capacity does not matter.
//
// Example (TrajectoryIndexTest.Example runs it):
//   // Slices of 4 rows.
//   TrajectoryIndex index(std::vector<StartRule>{{.length = 4}});
//   RILL_RETURN_IF_ERROR(storage->AddObserver(&index));
//   // One of the trajectories that have 4 rows, and its newest row:
//   const TrajectoryIndex::Handle t = index.starts(0).members()[draw];
//   const Slot slot = index.At(t, index.Get(t).rows - 1);
class TrajectoryIndex : public WriteObserver {
 public:
  // Names a trajectory until it has lost its last row, or a write in place has
  // changed what it is made of.
  using Handle = samplers_internal::TrajectoryRuns::Handle;
  // A row of a trajectory; offset 0 is its first live row.
  using Place = samplers_internal::TrajectoryRuns::Place;

  struct Trajectory {
    int64_t lane = 0;
    int64_t rows = 0;  // Live ones.
    std::optional<int64_t> id = std::nullopt;
    bool is_closed = false;  // Its last row has the end flag.
    // Rows are missing before its first one, or may be. They were evicted, or
    // dropped with the front of a batch longer than its lane. Or they were
    // there before the index and the state was not loaded. The last is marked
    // only for the lane's first row, since it is unknown for others. A
    // trajectory all of whose rows were evicted while others wrote to the lane
    // is forgotten. Rows that follow are then not cut.
    bool is_cut = false;
  };

  // Consecutive slots that are consecutive rows of a trajectory.
  struct Piece {
    Place place;  // Of the first.
    SlotRange slots;
  };

  // Counts of all that was ever looked at, by which tests see that nothing
  // grows with the capacity.
  struct Work {
    int64_t rows = 0;
    int64_t pieces = 0;
  };

  explicit TrajectoryIndex(std::vector<StartRule> rules);
  TrajectoryIndex(const TrajectoryIndex&) = delete;
  TrajectoryIndex& operator=(const TrajectoryIndex&) = delete;

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;
  // OnRetire, of the blocks of an append.
  void Retire(const LaneBlock& block);
  // OnRetire and OnWrite of one append, where nobody looks in between. `blocks`
  // are those of the rows that it retires, and of those that it writes; none
  // was dropped (WriteEvent::begins_cut). That is less work: lanes in the
  // middle of a trajectory are not looked at.
  void OnAppend(const WriteEvent& event, absl::Span<const LaneBlock> blocks);

  const Lanes& lanes() const { return runs_.lanes(); }
  int64_t num_lanes() const { return runs_.num_lanes(); }  // 0: not known yet.
  int64_t num_trajectories() const { return runs_.num_trajectories(); }
  int64_t num_rows() const { return num_rows_; }
  // The trajectories that have starts by a rule, weighted by how many.
  const samplers_internal::WeighedSet& starts(size_t rule) const {
    return sets_[rule];
  }
  // Rows of the longest of them; 0 where there is none, or the rule does not
  // say keeps_longest.
  int64_t LongestWithStarts(size_t rule) const {
    return lengths_[rule].longest();
  }

  // Has what tells of a trajectory fetched, for calls that come soon.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(Handle trajectory) const {
    runs_.Prefetch(trajectory);
  }

  Trajectory Get(Handle trajectory) const;
  // `offset` in [0, rows).
  Slot At(Handle trajectory, int64_t offset) const;
  // Appends rows [offset, offset + count) of a trajectory, which it has.
  void AppendSlots(Handle trajectory, int64_t offset, int64_t count,
                   std::vector<Slot>* slots) const;
  void AppendRanges(Handle trajectory, int64_t offset, int64_t count,
                    std::vector<SlotRange>* ranges) const;
  // The place of a row; nothing where it is not live.
  std::optional<Place> Find(Slot slot) const;
  // How many steps of its lane came after a live row.
  int64_t AgeOf(Slot slot) const;
  // How many live steps of its lane came before a live row.
  int64_t StepsBefore(Slot slot) const;
  // Appends what rows of consecutive steps belong to; those that are not live
  // are left out.
  void AppendPieces(const SlotRange& slots, std::vector<Piece>* pieces) const;
  // Appends the oldest rows of a lane, `most` or all there are, oldest first.
  void AppendLane(int64_t lane, int64_t most, std::vector<Piece>* pieces) const;
  // True if a write in place has other ends or ids than the rows.
  bool IsChange(const WriteEvent& event) const;
  // Rows of the shortest and of the longest trajectory; 0 and 0 where there is
  // none. Looks at all.
  std::pair<int64_t, int64_t> RangeOfRows() const;

  Work work() const { return {.rows = rows_seen_, .pieces = runs_.work()}; }
  int64_t memory_bytes() const;

  // A part of a sampler's state: what attaching to the same rows does not
  // tell, that is which trajectories are cut and the order of the sets. Load
  // follows the attaching; DATA_LOSS or FAILED_PRECONDITION, nothing changed,
  // where it does not fit. 8 bytes a trajectory and rule.
  void Save(SavedState* state) const;
  absl::Status Load(const SavedState& state,
                    const samplers_internal::ChangedOptions& changed);

 private:
  using Runs = samplers_internal::TrajectoryRuns;
  // Tells trajectories of a lane apart.
  struct Key {
    bool has_id = false;
    int64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // The state of the newest row that a lane ever had.
  enum class Tail { kNone, kUnknown, kOpen, kClosed };
  struct Lane {
    Handle open_without_id = -1;
    Tail tail = Tail::kNone;
    Key tail_key;
  };
  // A new value of a live row.
  struct Change {
    int64_t lane = 0;
    int64_t step = 0;
    std::optional<bool> is_end = std::nullopt;
    std::optional<int64_t> id = std::nullopt;
  };
  // Rows of one trajectory that were taken off the end of a lane.
  struct Cutting {
    int64_t step = 0;
    int64_t rows = 0;
    Key key;
    bool is_end = false;  // Its last row has the flag.
    bool is_cut = false;  // Its first row begins a trajectory that is cut.
  };
  // Rows of a lane that come when all lanes have lost theirs.
  struct LateRows {
    int64_t lane = 0;
    int64_t row = 0;  // Of the event.
    int64_t position = 0;
    int64_t count = 0;
  };
  struct OpenKey {
    int64_t lane = 0;
    int64_t id = 0;
  };
  // Finds the open trajectories that have ids without keeping those twice.
  struct OpenHash {
    using is_transparent = void;
    size_t operator()(const OpenKey& key) const {
      return absl::HashOf(key.lane, key.id);
    }
    size_t operator()(Handle handle) const {
      return (*this)(OpenKey{runs->at(handle).lane, runs->at(handle).id});
    }
    const Runs* runs;
  };
  struct OpenEq {
    using is_transparent = void;
    bool operator()(Handle a, Handle b) const { return a == b; }
    bool operator()(Handle a, const OpenKey& b) const {
      return runs->at(a).lane == b.lane && runs->at(a).id == b.id;
    }
    bool operator()(const OpenKey& a, Handle b) const { return (*this)(b, a); }
    const Runs* runs;
  };

  // Gives rows at the end of a lane to the open trajectory of `key`, or to a
  // new one.
  void Append(int64_t lane, int64_t rows, const Key& key, bool is_end,
              bool is_cut_if_new);
  bool IsCutHere(const Lane& lane, const Key& key) const;
  void Evict(int64_t lane, int64_t rows);
  // Rows [row, row + count) of the event, to a lane.
  void AppendRows(int64_t lane, int64_t count, int64_t row,
                  const WriteEvent& event,
                  samplers_internal::PieceScanner* scanner);
  void Free(Handle trajectory);
  Handle FindOpen(int64_t lane, const Key& key) const;
  void Open(Handle trajectory);
  void Shut(Handle trajectory);
  void UpdateSets(Handle trajectory);
  void ForgetRows();
  // Before `count` rows of a lane come from that position on.
  void SkipTo(int64_t lane, int64_t position, int64_t count);

  // Writes of many lanes: trajectory_index_append.cc. The event's rows from
  // `row` on are those of the block.
  void StopSliding();
  bool MaySlide(const LaneBlock& block) const;
  // Moves the lanes that slide on, and lists the others.
  void SlideLanes(const LaneBlock& block, int64_t row, const WriteEvent& event,
                  samplers_internal::PieceScanner* ends);
  // Those others. Lists them where their rows are to come late.
  void AdvanceLanes(const LaneBlock& block, int64_t row,
                    const WriteEvent& event,
                    samplers_internal::PieceScanner* pieces);
  // False, and nothing done, where a lane's rows must come late.
  bool Advance(int64_t lane, int64_t row, int64_t count, bool may_slide,
               const WriteEvent& event,
               samplers_internal::PieceScanner* pieces);

  // Writes in place: trajectory_index_in_place.cc.
  void CollectChanges(const WriteEvent& event,
                      std::vector<Change>* changes) const;
  bool IsChange(const Change& change) const;
  void Rewrite(absl::Span<const Change> changes);
  void TakeOff(int64_t lane, int64_t first_step);
  void PutBack(int64_t lane, const Cutting& cutting,
               absl::Span<const Change> changes);

  // trajectory_index_state.cc.
  absl::StatusOr<std::vector<Handle>> ReadTrajectories(
      const SavedState& state, absl::string_view name) const;

  const std::vector<StartRule> rules_;
  std::vector<samplers_internal::WeighedSet> sets_;  // One a rule.
  std::vector<samplers_internal::LengthCounts> lengths_;
  Runs runs_;
  std::vector<Lane> by_lane_;
  absl::flat_hash_set<Handle, OpenHash, OpenEq> open_;
  int64_t num_rows_ = 0;
  int64_t rows_seen_ = 0;
  bool sliding_have_ids_ = false;  // The trajectories of lanes that slide.
  std::vector<Change> changes_;    // Memory of OnWrite.
  std::vector<int64_t> others_;    // Of OnAppend.
  std::vector<LateRows> late_;
  std::vector<Cutting> cuttings_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_INDEX_H_
