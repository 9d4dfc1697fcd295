// SPDX-License-Identifier: Apache-2.0
// The writing side of RingStorage: check and stage everything that may fail,
// retire, copy, publish.
//
// Writers that go side by side share alone_mutex_, and each write goes through
// these steps:
//
// - It checks and stages its batch: keys, dtypes, shapes, lanes, memory.
// - With state_mutex_ it plans, reserves, retires, and notes its rows as in
//   flight.
// - Without that lock it copies.
// - With it again it publishes cursors and rows and notifies the observers,
//   which so receive one event at a time.
//
// A write with a row that is in flight waits for that row's writer, so no two
// copy to one row. Appends to one lane are planned one behind the other, copied
// together, and published in the order of their plans, so a lane's events are
// in order. Between a write's OnRetire and its OnWrite there may be events of
// others. No deadlock can form: a write that waits for rows has begun nothing,
// and one that waits to publish waits for an earlier one.
//
// Other writers hold alone_mutex_ exclusively, and find no write in flight.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "rill/base/status_macros.h"
#include "rill/storage/ring/ring_storage.h"
#include "rill/tensors/shape.h"

namespace rill::storage_internal {
namespace {

WriteEvent InPlaceEvent(const WriteEventBuilder& values,
                        const WriteScratch& scratch) {
  const std::vector<SlotRange>& slots = scratch.plan.written;
  WriteEvent event = values.Event(/*is_append=*/false, slots, slots);
  event.is_patch = scratch.is_patch;
  event.is_replacement = scratch.is_replacement;
  return event;
}

// Makes the event of a write in place to rows in host memory before the write,
// so that an error leaves all as it is. Only end leaves that are not written
// are read.
absl::Status StageEvent(absl::Span<const Slot> slots, const ValuesRead& read,
                        const RingRows& rows, WriteScratch* scratch) {
  RILL_RETURN_IF_ERROR(scratch->event.FromStored(
      rows.events, read, static_cast<int64_t>(slots.size()),
      [&](size_t leaf) -> absl::StatusOr<Tensor> {
        const BatchLeaf* const given = scratch->leaves.Find(leaf);
        if (given == nullptr) return rows.ReadToHost(slots, leaf);
        return *given->ready;
      },
      &scratch->leaves));
  scratch->event.TakeLast(slots);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExtendResult> RingStorage::Extend(const TensorDict& batch,
                                                 const WriteInfo& info) {
  return ExtendWith(batch, info, /*prepare=*/std::nullopt);
}

absl::StatusOr<ExtendResult> RingStorage::ExtendWith(
    const TensorDict& batch, const WriteInfo& info,
    std::optional<PrepareFn> prepare) {
  RILL_ASSIGN_OR_RETURN(const BatchRows extent,
                        BatchRows::Find(lanes(), batch, info));
  const LaneSteps append = {info.first_lane, extent.num_lanes, extent.steps};
  ThreadWriteScratch scratch;
  std::optional<absl::StatusOr<ExtendResult>> result;
  if (order_ == WriteOrder::kSideBySide) {
    absl::ReaderMutexLock together(&alone_mutex_);
    if (HeldRows() != nullptr) {
      result = Append(batch, append, extent, HeldRows(), prepare, &*scratch);
      // In host memory nothing but an observer fails once rows were retired.
      if (!scratch->has_failed) return *std::move(result);
    }
  }
  // Also for the first write, which makes the rows.
  absl::MutexLock alone(&alone_mutex_);
  if (!result.has_value()) {
    result = AppendAlone(batch, append, extent, prepare, &*scratch);
  }
  if (scratch->has_failed) AttachAllAgain(&*scratch);
  return *std::move(result);
}

absl::StatusOr<ExtendResult> RingStorage::AppendAlone(
    const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
    std::optional<PrepareFn> prepare, WriteScratch* scratch) {
  // Another writer may have made the rows before this one got the lock.
  if (HeldRows() != nullptr) {
    return Append(batch, append, extent, HeldRows(), prepare, scratch);
  }
  // A batch without rows must not decide the spec.
  if (append.count * append.steps == 0) return ExtendResult();
  const TensorDictSpec spec = TensorDictSpec::Of(batch);
  if (spec.empty()) {
    return InvalidArgument(
        "Storage::Extend: keys: got none, want a tensor at least");
  }
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<RingRows> rows, NewRows(spec));
  return Append(batch, append, extent, rows, prepare, scratch);
}

absl::Status RingStorage::StageBatch(const TensorDict& batch,
                                     const BatchRows& extent,
                                     const BatchRows& kept, RingRows* rows,
                                     std::optional<PrepareFn> prepare,
                                     WriteScratch* scratch,
                                     TensorDict* newest) {
  const auto bind = [&](const TensorDict& from) {
    return scratch->leaves.Bind("Storage::Extend", rows->spec, rows->tree, from,
                                /*allow_part=*/false);
  };
  RILL_RETURN_IF_ERROR(bind(batch));
  if (prepare.has_value()) {
    RILL_RETURN_IF_ERROR((*prepare)(rows));
  }
  // Nothing to write, but what does not fit is still an error.
  if (kept.num_lanes * kept.steps == 0) return absl::OkStatus();
  scratch->event.Clear();
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(scratch->event.FromBatch(rows->events, values_read(),
                                                  scratch->leaves, extent));
  }
  if (kept.steps < extent.steps) {
    // The event is made of the whole batch and then cut: whether a kept row is
    // the beginning of its trajectory depends on the rows before it.
    if (!observers_.empty()) scratch->event.DropAllBut(kept.steps, extent);
    RILL_ASSIGN_OR_RETURN(
        *newest, batch.Slice(extent.batch_rank - 1, extent.steps - kept.steps,
                             extent.steps));
    RILL_RETURN_IF_ERROR(bind(*newest));
  }
  return scratch->leaves.Prepare(rows->device, rows->lent, kept.batch_rank);
}

// The locks follow order_.
absl::Status RingStorage::BeginAppend(
    const LaneSteps& append, const BatchRows& kept, RingRows* rows,
    WriteScratch* scratch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  absl::MutexLockMaybe state(order_ == WriteOrder::kApart ? nullptr
                                                          : &state_mutex_);
  AppendPlan& plan = scratch->plan;
  WritesInFlight::Write& write = scratch->write;
  // The plan depends on what is in flight, so it is made anew after each wait.
  for (;; write_ended_.Wait(&state_mutex_)) {
    RILL_RETURN_IF_ERROR(
        rings_.CheckAppend("Storage::Extend", append, writes_.appends()));
    rings_.PlanAppend(append, writes_.appends(), &plan);
    write.append = append;
    write.ranges = plan.written;
    write.slots = {};
    if (writes_.empty()) break;
    if (MayBegin(/*is_append=*/true) && !writes_.Meets(&write)) break;
  }
  ExpandRanges(plan.written, &scratch->slots);
  // Behind this only a device's copy can fail.
  RILL_RETURN_IF_ERROR(rows->StageAppend(append, kept, scratch));
  if (order_ != WriteOrder::kApart) writes_.Begin(&write);
  if (!plan.retired.empty()) {
    const WriteEvent event = scratch->event.Event(plan);
    Tell([&](WriteObserver* observer) { observer->OnRetire(event); }, scratch);
  }
  leases_.End(plan.written);
  return absl::OkStatus();
}

ValuesRead RingStorage::values_read() const {
  ValuesRead read = ValuesRead::None();
  for (const WriteObserver* observer : observers_) {
    read = read | observer->values_read();
  }
  return read;
}

void RingStorage::Tell(absl::FunctionRef<void(WriteObserver*)> tell,
                       WriteScratch* scratch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (WriteObserver* observer : observers_) {
    if (std::find(deaf_.begin(), deaf_.end(), observer) != deaf_.end())
      continue;
    if (TellOne(observer, tell)) continue;
    // Until it is attached anew it draws nothing, and has no half of an event.
    deaf_.push_back(observer);
    scratch->has_failed = true;
  }
}

void RingStorage::EndWrite(WriteScratch* scratch) {
  if (order_ == WriteOrder::kApart) return;
  writes_.End(&scratch->write);
  write_ended_.SignalAll();
  leases_.End(scratch->plan.written);  // Those that were made meanwhile.
}

absl::StatusOr<ExtendResult> RingStorage::Append(
    const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
    const std::shared_ptr<RingRows>& rows, std::optional<PrepareFn> prepare,
    WriteScratch* scratch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto drop = absl::MakeCleanup([&] {
    // After the commit there is nothing to drop.
    if (order_ == WriteOrder::kApart) rows->Drop();
  });
  const AppendPlan& plan = scratch->plan;
  BatchRows kept = extent;
  kept.steps = std::min(extent.steps, lanes().capacity);
  // Holds the tensors that the leaves point to until they are copied.
  TensorDict newest;  // Of a batch that is longer than a lane.
  RILL_RETURN_IF_ERROR(
      StageBatch(batch, extent, kept, rows.get(), prepare, scratch, &newest));
  if (kept.num_lanes * kept.steps == 0) return ExtendResult();
  RILL_RETURN_IF_ERROR(BeginAppend(append, kept, rows.get(), scratch));
  const absl::Status copied = rows->CopyAppend(kept, observers_, scratch);
  absl::ReleasableMutexLock state(&state_mutex_);
  // The cursor counts steps without gaps, so a later plan of the lane must not
  // be published first.
  while (writes_.HasEarlier(scratch->write)) write_ended_.Wait(&state_mutex_);
  EndWrite(scratch);
  scratch->has_failed = scratch->has_failed || !copied.ok();
  RILL_RETURN_IF_ERROR(copied);
  if (rows_ == nullptr) rows_ = rows;
  rings_.Append(append);
  // Before Publish: a row that others can read is not lost where the process is
  // killed next.
  rows->Commit(scratch->write);
  Publish();
  if (order_ == WriteOrder::kApart) state.Release();
  const WriteEvent event = scratch->event.Event(plan);
  // Rows that are published stay so, whatever an observer makes of them.
  Tell([&](WriteObserver* observer) { observer->OnWrite(event); }, scratch);
  return ExtendResult{.rows_written = extent.num_lanes * plan.kept,
                      .rows_dropped = extent.num_lanes * plan.dropped};
}

// --- In place ----------------------------------------------------------------

absl::Status RingStorage::WriteInPlace(absl::Span<const Slot> slots,
                                       const TensorDict& rows, InPlace kind) {
  return WriteInPlaceWith(slots, rows, kind, /*is_whole=*/true,
                          /*prepare=*/std::nullopt);
}

absl::Status RingStorage::WriteInPlaceWith(absl::Span<const Slot> slots,
                                           const TensorDict& rows, InPlace kind,
                                           bool is_whole,
                                           std::optional<PrepareFn> prepare) {
  const Shape want = {static_cast<int64_t>(slots.size())};
  if (!(rows.batch_shape() == want)) {
    return InvalidArgument("Storage::WriteAt: batch shape: got ",
                           rows.batch_shape().ToString(), ", want ",
                           want.ToString(), ", one row a slot");
  }
  ThreadWriteScratch scratch;
  scratch->is_patch = kind == InPlace::kPatch;
  absl::Status status;
  if (order_ == WriteOrder::kSideBySide) {
    absl::ReaderMutexLock together(&alone_mutex_);
    status = Overwrite(slots, rows, is_whole, prepare, &*scratch);
    // Else the rows are there, and what to tell of them could not be read.
    if (!scratch->has_failed) return status;
  }
  absl::MutexLock alone(&alone_mutex_);
  if (order_ != WriteOrder::kSideBySide) {
    status = Overwrite(slots, rows, is_whole, prepare, &*scratch);
  }
  if (scratch->has_failed) AttachAllAgain(&*scratch);
  return status;
}

// The locks follow order_.
absl::Status RingStorage::BeginOverwrite(absl::Span<const Slot> slots,
                                         RingRows* rows, WriteScratch* scratch)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  absl::MutexLockMaybe state(order_ == WriteOrder::kApart ? nullptr
                                                          : &state_mutex_);
  WritesInFlight::Write& write = scratch->write;
  write.append = {};
  write.ranges = {};
  write.slots = slots;
  for (;; write_ended_.Wait(&state_mutex_)) {
    RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::WriteAt", slots));
    if (writes_.empty()) break;
    if (MayBegin(/*is_append=*/false) && !writes_.Meets(&write)) break;
  }
  RILL_RETURN_IF_ERROR(rows->StageOverwrite(slots, scratch));
  if (order_ != WriteOrder::kApart) writes_.Begin(&write);
  scratch->event.Clear();
  // Nobody asks which runs are written, and joining them takes a pass over all
  // slots.
  if (observers_.empty() && !leases_.any()) {
    scratch->plan.written.clear();
    return absl::OkStatus();
  }
  JoinSlots(lanes(), slots, &scratch->plan.written);
  if (order_ == WriteOrder::kApart && !observers_.empty()) {
    RILL_RETURN_IF_ERROR(StageEvent(slots, values_read(), *rows, scratch));
  }
  // Without values: observers receive those with the write.
  const WriteEventBuilder none;
  const WriteEvent event = InPlaceEvent(none, *scratch);
  Tell([&](WriteObserver* observer) { observer->OnRetire(event); }, scratch);
  leases_.End(scratch->plan.written);
  return absl::OkStatus();
}

absl::Status RingStorage::Overwrite(
    absl::Span<const Slot> slots, const TensorDict& rows, bool is_whole,
    std::optional<PrepareFn> prepare,
    WriteScratch* scratch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  RingRows* const stored = HeldRows().get();
  if (stored == nullptr || slots.empty() || prepare.has_value()) {
    absl::ReaderMutexLock state(&state_mutex_);
    RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::WriteAt", slots));
    if (stored == nullptr) return absl::OkStatus();  // No slots, no keys yet.
  }
  const bool is_apart = order_ == WriteOrder::kApart;
  const auto drop = absl::MakeCleanup([&] {
    if (is_apart) stored->Drop();
  });
  BatchLeaves& leaves = scratch->leaves;
  if (!prepare.has_value() || !rows.empty()) {
    RILL_RETURN_IF_ERROR(leaves.Bind("Storage::WriteAt", stored->spec,
                                     stored->tree, rows, /*allow_part=*/true));
  }
  if (prepare.has_value()) {
    RILL_RETURN_IF_ERROR((*prepare)(stored));
  }
  if (slots.empty()) return absl::OkStatus();
  // Rows are replaced only where all leaves are given; else age and priority
  // stay those of the old rows.
  scratch->is_replacement =
      !scratch->is_patch && is_whole &&
      leaves.leaves().size() == stored->spec.leaves().size();
  RILL_RETURN_IF_ERROR(
      leaves.Prepare(stored->device, stored->lent, /*batch_rank=*/1));
  RILL_RETURN_IF_ERROR(BeginOverwrite(slots, stored, scratch));
  absl::Status written;
  {
    absl::MutexLockMaybe state(is_apart ? &state_mutex_ : nullptr);
    written = stored->CopyOverwrite(slots, scratch);
  }
  if (written.ok() && !is_apart && !observers_.empty()) {
    // From what is stored, not from `rows`: of a slot that is named twice both
    // values are then the one that stays.
    written = scratch->event.FromStored(
        stored->events, values_read(), static_cast<int64_t>(slots.size()),
        [&](size_t leaf) { return stored->ReadToHost(slots, leaf); }, &leaves);
  }
  absl::MutexLockMaybe state(is_apart ? nullptr : &state_mutex_);
  stored->Commit(scratch->write);
  // After an error too: some rows may be others, and the next save must not
  // link their chunks.
  stored->overwrites.Add(slots);
  if (leases_.any()) JoinSlots(lanes(), slots, &scratch->plan.written);
  EndWrite(scratch);
  scratch->has_failed = scratch->has_failed || !written.ok();
  RILL_RETURN_IF_ERROR(written);
  const WriteEvent event = InPlaceEvent(scratch->event, *scratch);
  Tell([&](WriteObserver* observer) { observer->OnWrite(event); }, scratch);
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
