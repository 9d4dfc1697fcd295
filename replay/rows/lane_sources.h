// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_LANE_SOURCES_H_
#define RILL_REPLAY_ROWS_LANE_SOURCES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/storage.h"
#include "rill/tensors/shape.h"

namespace rill::replay_internal {

// Knows which source wrote each lane of a storage last, and the number of its
// last batch. Open trajectories in the lanes of a batch are cut (Sink::Cut)
// where the batch does not follow on them:
// - A lane's last rows are another source's: of another WriteInfo::source or
//   another producer.
// - Somebody wrote past this buffer, as another buffer of the storage does.
//   Such a buffer cuts before its own rows.
// - The batch is not the source's next one (WriteInfo::sequence).
// A source that is new here goes on with rows that were there before it, unless
// its batch is its first.
//
// An observer of the storage, beside the buffer's others. Logs once the lanes
// that nobody writes, once that sources take turns in a lane, and once that
// hand-written rows cannot tell a cut. Logs once too that a batch was longer
// than a lane.
//
// Thread-safety: thread-safe. Writes that follow on their last ones go side by
//   side; others go alone.
// Cost: a look-up, and a comparison a lane; no allocation.
class LaneSources final : public WriteObserver {
 public:
  // `storage` outlives this.
  explicit LaneSources(const Storage* storage);

  using CutFn = absl::FunctionRef<absl::Status(LaneRange lanes)>;
  using WriteFn = absl::FunctionRef<absl::StatusOr<ExtendResult>()>;
  // Calls `write`, which appends a batch of that shape, after `cut` where that
  // is due. An error of `cut` is the result, but for hand-written rows
  // that cannot tell a cut (FAILED_PRECONDITION). An error of `write` leaves
  // what was cut.
  absl::StatusOr<ExtendResult> Write(const Shape& shape, const WriteInfo& info,
                                     CutFn cut, WriteFn write);

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& /*event*/) override {}
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  struct Source {
    std::atomic<int64_t> sequence = 0;
    std::atomic<int64_t> epoch = 0;
  };
  // WriteInfo::source and producer.
  using Key = std::pair<uint64_t, int64_t>;

  bool IsKnown(const Source& source) const;
  // Whether somebody else wrote one of the lanes last.
  bool AreOthers(LaneRange lanes, const Source& source) const;
  bool Follows(const Source& source, LaneRange lanes,
               const WriteInfo& info) const;
  absl::Status CutFor(const Source& source, LaneRange lanes,
                      const WriteInfo& info, CutFn cut)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ExtendResult> Run(LaneRange lanes, int64_t steps,
                                   const WriteInfo& info, WriteFn write,
                                   Source* source);
  void LookForUnused();
  // The batch of `steps` a lane was written.
  void LookForDropped(int64_t steps, const ExtendResult& result);

  static inline thread_local const LaneSources* writing_ = nullptr;

  const Storage* const storage_;
  const Lanes lanes_;
  // A source for each lane. Null: no rows, or from before.
  const std::unique_ptr<std::atomic<const Source*>[]> last_;
  const Source other_;              // A writer past this buffer.
  std::atomic<int64_t> epoch_ = 0;  // Numbers are of one since OnClear.
  bool is_attaching_ = false;       // Of events, which never overlap.
  std::atomic<int64_t> writes_ = 0;
  std::atomic<int64_t> rows_ = 0;
  std::atomic<bool> has_looked_ = false;
  std::atomic<bool> has_told_dropped_ = false;

  absl::Mutex mutex_;
  absl::node_hash_map<Key, Source> sources_ ABSL_GUARDED_BY(mutex_);
  bool has_told_turns_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_told_no_cut_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_LANE_SOURCES_H_
