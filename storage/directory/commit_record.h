// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_COMMIT_RECORD_H_
#define RILL_STORAGE_DIRECTORY_COMMIT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/on_disk/row_line.h"  // IWYU pragma: export
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// How many appends may be in flight at a time.
inline constexpr size_t kMaxAppendsInFlight = 3;

// The content of a record.
struct CommitState {
  std::vector<LaneMark> marks;  // One a lane.
  // In the order in which they were announced; those of one lane are committed
  // in it.
  std::vector<LaneSteps> in_flight;
  friend bool operator==(const CommitState&, const CommitState&) = default;
};

// A state as a reader in another process sees it.
struct CommitView {
  uint64_t number = 0;  // Grows with every state.
  // If two views have the same generation, only appends happened between them.
  uint64_t generation = 0;
  CommitState state;

  // Live rows are being written over in place: any may be half.
  bool is_in_place() const { return generation % 2 != 0; }
};

// A record in mapped memory of what is committed. A storage whose writer was
// killed (SIGKILL) at any instruction reopens with whole rows. All acknowledged
// rows are among them, less those that the appends in flight had retired.
// docs/formats/storage_directory.md has every byte.
//
// Two slots, on pages of their own, are written alternately. Each holds a
// number of its own that grows (CommitView), every lane's mark, and checksums.
// The valid slot with the later number counts. An append is
//   Announce  the other slot: marks as they are, and this in flight too;
//   (data)    rows may be half old and half new now;
//   Commit    the other slot again: marks moved on, this in flight no more.
// Why that is enough: a process that is killed leaves its stores up to some
// instruction in the page cache, in program order, and none after it. While a
// slot is half written its checksums do not fit and the other one counts, which
// was complete before. So a reader finds one of three states. Before Announce,
// no row was touched. With the intent, the rows that it retires are dropped and
// the rest is whole. After Commit, the data were complete before it.
//
// Several lanes: an append moves a run of lanes by the same number of steps. So
// the intent is three numbers however many lanes it touches. A lane that it
// does not touch has the same mark in both slots. The slot that is written next
// is behind by the lanes of the last commit only; those are copied first, so
// all costs O(lanes touched) and never O(lanes). The checksum of the marks is a
// sum of hashes, one a lane, for the same reason.
//
// Thread-safety: thread-compatible; its stores are in the order of the calls,
//   whatever threads they come from. Cost: Announce and Commit 0.1 us each, for
//   many lanes 2 ns a lane each; no system call (commit_record_benchmark).
class CommitRecord {
 public:
  // Bytes of memory that a record takes.
  static int64_t SizeBytes(int64_t lanes);

  // The content of a record, with every field checked. DATA_LOSS where neither
  // slot is whole or they are of other lanes. Reads in O(lanes).
  static absl::StatusOr<CommitView> Read(absl::Span<const std::byte> bytes,
                                         const Lanes& lanes);

  // The same while another process goes on writing there: a state that was the
  // newest at one moment of the call. DATA_LOSS as Read; UNAVAILABLE where the
  // writer was faster every time. Reuses `view`.
  static absl::Status ReadLive(absl::Span<const std::byte> bytes,
                               const Lanes& lanes, CommitView* view);
  // The newest state still is the one of this number: what was copied between
  // ReadLive and here did not change meanwhile. Cost: some 20 ns.
  static bool IsNewest(absl::Span<const std::byte> bytes, const Lanes& lanes,
                       uint64_t number);

  // The state as it is after the writer died: the rows that the appends in
  // flight had retired are no longer live.
  static CommitState Settle(CommitState state, const Lanes& lanes);

  // Goes on in `bytes`, which hold a record (Open) or zeros (Create), and
  // publishes `marks` there.
  CommitRecord(absl::Span<std::byte> bytes, const Lanes& lanes,
               absl::Span<const LaneMark> marks);

  // Steps of a lane below it go once `append` is announced too.
  int64_t FirstKept(const LaneSteps& append, int64_t lane) const;
  // `append` lies within the lanes and steps > 0; kMaxAppendsInFlight at a
  // time, whose rows are apart.
  void Announce(const LaneSteps& append);
  // One that was announced, the first of its lanes.
  void Commit(const LaneSteps& append);
  // Replaces all marks; nothing is in flight.
  void Set(absl::Span<const LaneMark> marks);
  // Around changes of rows that are live and stay so; several at a time, but no
  // further one after a few that overlapped, so that readers get their turn.
  // Also around a Set that discards rows, and the zeros over those rows.
  bool MayBeginInPlace() const {
    return in_place_ == 0 || joined_ < kMaxJoined;
  }
  void BeginInPlace();
  void EndInPlace();

 private:
  std::byte* Slot(int index) const { return bytes_ + index * slot_bytes_; }
  LaneMark* Marks(int index) const;
  // Makes the other slot the one that counts.
  void Publish();
  void CatchUp();
  // The next state begins an even, or odd, generation.
  void StartGeneration(bool is_odd);

  std::byte* bytes_;
  Lanes lanes_;
  int64_t slot_bytes_;
  int current_ = 0;
  uint64_t number_ = 0;
  uint64_t generation_ = 0;
  uint64_t sum_ = 0;  // Of the marks.
  std::vector<LaneSteps> in_flight_;
  static constexpr int kMaxJoined = 8;
  int in_place_ = 0;  // Changes that have begun and not ended.
  int joined_ = 0;    // Those that began while others had.
  // The lanes whose marks the other slot does not have yet.
  int64_t behind_first_ = 0;
  int64_t behind_count_ = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_COMMIT_RECORD_H_
