// SPDX-License-Identifier: Apache-2.0
// The writing side of DenseStorage: check and stage everything that may fail,
// retire, copy in windows, publish.
//
// Writers share alone_mutex_, and each write goes through these steps:
//
// - It checks and stages its batch: keys, dtypes, shapes, lanes, memory.
// - With state_mutex_ it plans, reserves, retires, and notes its rows as in
//   flight.
// - Without that lock it copies, a window at a time.
// - With it again it publishes cursors and the commit record and notifies the
//   observers, which so receive one event at a time.
//
// A write with a row that is in flight waits for that row's writer, so no two
// copy to one row. Appends to one lane are planned one behind the other, copied
// together, and published in the order of their plans, so a lane's events are
// in order. Between a write's OnRetire and its OnWrite there may be events of
// others. No deadlock can form: a write that waits for rows has begun nothing,
// and one that waits to publish waits for an earlier one.
//
// Two kinds of writers hold alone_mutex_ exclusively. A device's copies are
// serialised on one stream, and with dedup_next the bytes of a row lie in its
// neighbours.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/storage/dense_storage_impl.h"

namespace rill::storage_internal {
namespace {

// How far a leaf's steps, and its lanes, are apart in a batch.
struct BatchStrides {
  int64_t lane = 0;
  int64_t step = 0;
};

BatchStrides StridesOf(const Tensor& tensor, const BatchRows& extent) {
  const auto strides = tensor.strides_bytes();
  if (extent.batch_rank == 1) return {0, strides[0]};
  return {strides[0], strides[1]};
}

// One stride goes over all kept rows of all leaves.
bool IsFlat(absl::Span<const BatchLeaf> leaves, const BatchRows& extent) {
  if (extent.num_lanes == 1) return true;
  if (extent.steps == 1) return true;
  return std::all_of(leaves.begin(), leaves.end(), [&](const BatchLeaf& leaf) {
    const BatchStrides strides = StridesOf(*leaf.ready, extent);
    return strides.lane == strides.step * extent.steps;
  });
}

// The event of a write in place. Rows are replaced only where all leaves are
// given; else age and priority stay those of the old rows.
WriteEvent InPlaceEvent(const TensorDictSpec& spec,
                        const WriteScratch& scratch) {
  const std::vector<SlotRange>& slots = scratch.plan.written;
  WriteEvent event = scratch.event.Event(/*is_append=*/false, slots, slots);
  event.is_patch = scratch.in_place == InPlace::kPatch;
  event.is_replacement =
      !event.is_patch && scratch.leaves.leaves().size() == spec.leaves().size();
  return event;
}

}  // namespace

absl::StatusOr<ExtendResult> DenseStorageImpl::Extend(const TensorDict& batch,
                                                      const WriteInfo& info) {
  RILL_ASSIGN_OR_RETURN(const BatchRows extent,
                        BatchRows::Find(lanes(), batch, info));
  const LaneSteps append = {info.first_lane, extent.num_lanes, extent.steps};
  ThreadWriteScratch scratch;
  if (!writes_alone_) {
    // In host memory nothing fails once rows were retired.
    absl::ReaderMutexLock together(&alone_mutex_);
    if (Rows* const rows = HeldRows()) {
      return Append(batch, append, extent, rows, /*fresh=*/nullptr, &*scratch);
    }
  }
  // Also for the first write, which makes the table.
  absl::MutexLock alone(&alone_mutex_);
  auto result = AppendAlone(batch, append, extent, &*scratch);
  if (scratch->has_failed) AttachAllAgain(&*scratch);
  return result;
}

absl::StatusOr<ExtendResult> DenseStorageImpl::AppendAlone(
    const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
    WriteScratch* scratch) {
  // Another writer may have made the table before this one got the lock.
  if (Rows* const rows = HeldRows()) {
    return Append(batch, append, extent, rows, /*fresh=*/nullptr, scratch);
  }
  // A batch without rows must not decide the spec.
  if (append.count * append.steps == 0) return ExtendResult();
  const TensorDictSpec spec = TensorDictSpec::Of(batch);
  if (spec.empty()) {
    return absl::InvalidArgumentError(
        "Storage::Extend: keys: got none, want a tensor at least");
  }
  RILL_ASSIGN_OR_RETURN(auto fresh, MakeRows(spec));
  Rows* const rows = fresh.get();
  return Append(batch, append, extent, rows, &fresh, scratch);
}

absl::Status DenseStorageImpl::StageBatch(
    const TensorDict& batch, const BatchRows& extent, const BatchRows& kept,
    const Rows& rows, WriteScratch* scratch, TensorDict* newest) {
  RILL_RETURN_IF_ERROR(scratch->leaves.Bind("Storage::Extend", rows.spec(),
                                            rows.tree, batch,
                                            /*allow_part=*/false));
  // Nothing to write, but what does not fit is still an error.
  if (kept.num_lanes * kept.steps == 0) return absl::OkStatus();
  scratch->event.Clear();
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(
        scratch->event.FromBatch(rows.events, scratch->leaves, extent));
  }
  if (kept.steps == extent.steps) {
    return scratch->leaves.Prepare(*rows.table, kept.batch_rank);
  }
  // The event is made of the whole batch and then cut: whether a kept row is
  // the beginning of its trajectory depends on the rows before it.
  if (!observers_.empty()) scratch->event.DropAllBut(kept.steps, extent);
  RILL_ASSIGN_OR_RETURN(
      *newest, batch.Slice(extent.batch_rank - 1, extent.steps - kept.steps,
                           extent.steps));
  RILL_RETURN_IF_ERROR(scratch->leaves.Bind("Storage::Extend", rows.spec(),
                                            rows.tree, *newest,
                                            /*allow_part=*/false));
  return scratch->leaves.Prepare(*rows.table, kept.batch_rank);
}

absl::Status DenseStorageImpl::BeginAppend(const LaneSteps& append,
                                           const BatchRows& kept, Rows* rows,
                                           WriteScratch* scratch) {
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
    // The commit record names each append in flight and has room for three; a
    // fourth waits here.
    const bool has_room =
        directory_ == nullptr ||
        writes_.appends().size() < directory_->max_appends_in_flight();
    if (has_room && !writes_.Meets(&write)) break;
  }
  ExpandRanges(plan.written, &scratch->slots);
  // Steps that may still fail come before the announcement and OnRetire. Behind
  // them only a device's copy can fail.
  if (NextRows* const next = rows->table->next()) {
    RILL_RETURN_IF_ERROR(next->PlanAppend(
        scratch->slots, kept.num_lanes, kept.steps,
        [&](size_t leaf) -> NextRows::Steps {
          const Tensor& tensor = *scratch->leaves.Find(leaf)->ready;
          const BatchStrides strides = StridesOf(tensor, kept);
          return {tensor.raw_data(), strides.lane, strides.step};
        }));
  }
  if (directory_ != nullptr) {
    RILL_RETURN_IF_ERROR(directory_->Reserve(plan.written));
    directory_->Announce(append);
  }
  writes_.Begin(&write);
  if (!plan.retired.empty()) {
    const WriteEvent event = scratch->event.Event(
        /*is_append=*/true, plan.retired, plan.written);
    for (WriteObserver* observer : observers_) observer->OnRetire(event);
  }
  leases_.End(plan.written);
  return absl::OkStatus();
}

void DenseStorageImpl::EndWrite(WriteScratch* scratch) {
  writes_.End(&scratch->write);
  write_ended_.SignalAll();
  leases_.End(scratch->plan.written);  // Those that were made meanwhile.
}

absl::StatusOr<ExtendResult> DenseStorageImpl::Append(
    const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
    Rows* rows, std::unique_ptr<Rows>* fresh, WriteScratch* scratch) {
  const AppendPlan& plan = scratch->plan;
  BatchRows kept = extent;
  kept.steps = std::min(extent.steps, lanes().capacity);
  TensorDict newest;  // Of a batch that is longer than a lane.
  RILL_RETURN_IF_ERROR(
      StageBatch(batch, extent, kept, *rows, scratch, &newest));
  if (kept.num_lanes * kept.steps == 0) return ExtendResult();
  {
    absl::MutexLock state(&state_mutex_);
    RILL_RETURN_IF_ERROR(BeginAppend(append, kept, rows, scratch));
  }
  const absl::Status copied = CopyBatch(kept, rows, scratch);
  absl::MutexLock state(&state_mutex_);
  // The cursor counts steps without gaps, so a later plan of the lane must not
  // be published first.
  while (writes_.HasEarlier(scratch->write)) write_ended_.Wait(&state_mutex_);
  EndWrite(scratch);
  scratch->has_failed = !copied.ok();
  RILL_RETURN_IF_ERROR(copied);
  if (fresh != nullptr) rows_ = std::move(*fresh);
  rings_.Append(append);
  // Before Publish: a row that others can read is not lost where the process is
  // killed next.
  if (directory_ != nullptr) directory_->Commit(append);
  Publish();
  const WriteEvent event = scratch->event.Event(
      /*is_append=*/true, plan.retired, plan.written);
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return ExtendResult{.rows_written = extent.num_lanes * plan.kept,
                      .rows_dropped = extent.num_lanes * plan.dropped};
}

absl::Status DenseStorageImpl::WriteInWindows(Rows* rows,
                                              absl::Span<const Slot> slots,
                                              RunCutter* runs,
                                              WriteScratch* scratch) {
  RowTable& table = *rows->table;
  std::vector<LeafBatch>& places = scratch->places;
  std::vector<SlotRange>& announced = scratch->announced;
  if (!table.device().is_cpu()) return table.Write(slots, places);
  const bool has_next = table.next() != nullptr;
  // Each range is announced with the slots before it.
  const size_t max_ranges =
      has_next ? EpochWindows::kMaxRanges / kRangesWithPredecessors
               : EpochWindows::kMaxRanges;
  // The windows of an announcement open in ascending order. Slots in any order,
  // and slots that are announced with their predecessors, are therefore
  // announced one window at a time.
  // Else what is announced is one window.
  const bool is_ascending = runs != nullptr && !has_next;
  const int64_t most = is_ascending ? rows->announced_rows : rows->window_rows;
  while (!slots.empty()) {
    const int64_t cut =
        std::min<int64_t>(most, static_cast<int64_t>(slots.size()));
    size_t left = runs != nullptr
                      ? runs->Cut(cut, max_ranges, &announced)
                      : CutWindow(slots, cut, max_ranges, &announced);
    if (has_next) AddPredecessors(lanes(), &announced);
    if (rows->ahead) rows->ahead->BeforeRuns(announced);
    const size_t all = left;
    int64_t may_change = is_ascending ? AskObservers(announced, 0) : cut;
    const auto next = [&] {
      const int64_t window = std::min(rows->window_rows, may_change);
      return is_ascending ? std::min(left, static_cast<size_t>(window)) : left;
    };
    size_t count = next();
    auto open = is_ascending ? windows_.Open(announced, slots[count - 1] + 1)
                             : windows_.Open(announced);
    for (;;) {
      RILL_RETURN_IF_ERROR(table.Write(slots.first(count), places));
      for (LeafBatch& place : places) {
        place.data += static_cast<int64_t>(count) * place.stride;
      }
      slots.remove_prefix(count);
      left -= count;
      if (left == 0) break;
      may_change -= static_cast<int64_t>(count);
      if (may_change <= 0) {
        // While observers wait no window is open. The gather that they wait for
        // could else wait for this window.
        open.Close();
        may_change = AskObservers(announced, all - left);
      }
      count = next();
      open.Next(slots[count - 1] + 1);
    }
  }
  return absl::OkStatus();
}

int64_t DenseStorageImpl::AskObservers(absl::Span<const SlotRange> ranges,
                                       size_t done) const {
  int64_t rows = std::numeric_limits<int64_t>::max();
  if (!traits().asks_before_overwriting) return rows;
  for (WriteObserver* observer : observers_) {
    rows = std::min(
        rows, observer->BeforeOverwrite(ranges, static_cast<int64_t>(done)));
  }
  return rows;
}

absl::Status DenseStorageImpl::CopyBatch(const BatchRows& kept, Rows* rows,
                                         WriteScratch* scratch) {
  std::vector<LeafBatch>& places = scratch->places;
  const absl::Span<const BatchLeaf> leaves = scratch->leaves.leaves();
  const bool is_flat = IsFlat(leaves, kept);
  // Where one stride does not reach all rows, one copy a lane; scratch->slots
  // has the lanes in this order.
  const int64_t pieces = is_flat ? 1 : kept.num_lanes;
  const int64_t rows_each = kept.num_lanes * kept.steps / pieces;
  const bool past_caches = rows->PassesCaches(pieces * rows_each);
  RunCutter runs(scratch->plan.written);
  for (int64_t lane = 0; lane < pieces; ++lane) {
    places.clear();
    for (const BatchLeaf& leaf : leaves) {
      if (leaf.ready->num_elements() == 0) continue;  // And no address.
      const BatchStrides strides = StridesOf(*leaf.ready, kept);
      const bool goes_by_lane = is_flat && kept.steps == 1;
      places.push_back({leaf.leaf, leaf.ready->raw_data() + lane * strides.lane,
                        goes_by_lane ? strides.lane : strides.step,
                        past_caches});
    }
    RILL_RETURN_IF_ERROR(
        WriteInWindows(rows,
                       absl::MakeConstSpan(scratch->slots)
                           .subspan(lane * rows_each, rows_each),
                       &runs, scratch));
  }
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::WriteInPlace(absl::Span<const Slot> slots,
                                            const TensorDict& rows,
                                            InPlace kind) {
  const Shape want = {static_cast<int64_t>(slots.size())};
  if (!(rows.batch_shape() == want)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Storage::WriteAt: batch shape: got ", rows.batch_shape().ToString(),
        ", want ", want.ToString(), ", one row a slot"));
  }
  ThreadWriteScratch scratch;
  scratch->in_place = kind;
  absl::Status status;
  if (!writes_alone_) {
    absl::ReaderMutexLock together(&alone_mutex_);
    status = Overwrite(slots, rows, &*scratch);
    // Else the rows are there, and what to tell of them could not be read.
    if (!scratch->has_failed) return status;
  }
  absl::MutexLock alone(&alone_mutex_);
  if (writes_alone_) status = Overwrite(slots, rows, &*scratch);
  if (scratch->has_failed) AttachAllAgain(&*scratch);
  return status;
}

absl::Status DenseStorageImpl::BeginOverwrite(absl::Span<const Slot> slots,
                                              Rows* rows,
                                              WriteScratch* scratch) {
  WritesInFlight::Write& write = scratch->write;
  write.append = {};
  write.ranges = {};
  write.slots = slots;
  // The record lets only a few changes join one that is under way, so that
  // readers in other processes find an even generation in time.
  for (;; write_ended_.Wait(&state_mutex_)) {
    RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::WriteAt", slots));
    if (writes_.empty()) break;
    const bool has_room =
        directory_ == nullptr || directory_->MayBeginInPlace();
    if (has_room && !writes_.Meets(&write)) break;
  }
  if (NextRows* const next = rows->table->next()) {
    // Cells are reserved for each row once.
    std::vector<Slot>& once = scratch->slots;
    once.assign(slots.begin(), slots.end());
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    RILL_RETURN_IF_ERROR(next->PlanOverwrite(once, [&](size_t leaf) {
      return scratch->leaves.Find(leaf) != nullptr;
    }));
  }
  // Space was reserved when the rows were appended.
  writes_.Begin(&write);
  if (directory_ != nullptr) directory_->BeginInPlace();
  scratch->event.Clear();
  // Nobody asks which runs are written, and joining them takes a pass over all
  // slots.
  if (observers_.empty() && !leases_.any()) {
    scratch->plan.written.clear();
    return absl::OkStatus();
  }
  JoinSlots(lanes(), slots, &scratch->plan.written);
  const WriteEvent event = InPlaceEvent(rows->spec(), *scratch);
  for (WriteObserver* observer : observers_) observer->OnRetire(event);
  leases_.End(scratch->plan.written);
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Overwrite(absl::Span<const Slot> slots,
                                         const TensorDict& rows,
                                         WriteScratch* scratch) {
  Rows* const stored = HeldRows();
  if (stored == nullptr || slots.empty()) {
    absl::ReaderMutexLock state(&state_mutex_);
    RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::WriteAt", slots));
    if (stored == nullptr) return absl::OkStatus();  // No slots, no keys yet.
  }
  BatchLeaves& leaves = scratch->leaves;
  RILL_RETURN_IF_ERROR(leaves.Bind("Storage::WriteAt", stored->spec(),
                                   stored->tree, rows,
                                   /*allow_part=*/true));
  if (slots.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(leaves.Prepare(*stored->table, /*batch_rank=*/1));
  {
    absl::MutexLock state(&state_mutex_);
    RILL_RETURN_IF_ERROR(BeginOverwrite(slots, stored, scratch));
  }
  if (stored->ahead) stored->ahead->BeforeRows(slots);
  const bool past_caches =
      stored->PassesCaches(static_cast<int64_t>(slots.size()));
  std::vector<LeafBatch>& places = scratch->places;
  places.clear();
  for (const BatchLeaf& leaf : leaves.leaves()) {
    if (leaf.ready->num_elements() == 0) continue;  // And no address.
    places.push_back({leaf.leaf, leaf.ready->raw_data(),
                      leaf.ready->strides_bytes()[0], past_caches});
  }
  absl::Status written =
      WriteInWindows(stored, slots, /*runs=*/nullptr, scratch);
  if (written.ok() && !observers_.empty()) {
    // From the table, not from `rows`: of a slot that is named twice both
    // values are then the one that stays.
    written = scratch->event.FromTable(stored->events, *stored->table, slots,
                                       &leaves);
  }
  absl::MutexLock state(&state_mutex_);
  if (directory_ != nullptr) directory_->EndInPlace();
  // After an error too: some rows may be others, and the next save must not
  // link their chunks.
  stored->overwrites.Add(slots);
  if (leases_.any()) JoinSlots(lanes(), slots, &scratch->plan.written);
  EndWrite(scratch);
  scratch->has_failed = !written.ok();
  RILL_RETURN_IF_ERROR(written);
  const WriteEvent event = InPlaceEvent(stored->spec(), *scratch);
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Clear() {
  absl::MutexLock alone(&alone_mutex_);
  if (directory_ != nullptr) {
    RILL_RETURN_IF_ERROR(directory_->ForgetPositions(lanes()));
    RILL_RETURN_IF_ERROR(
        directory_->BeginDiscard(HeldRings(), LaneRings(lanes())));
  }
  for (WriteObserver* observer : observers_) observer->OnClear();
  {
    absl::MutexLock lock(&state_mutex_);
    leases_.EndAll();
    rings_.Clear();
    Publish();
  }
  last_save_.reset();
  const Rows* const rows = HeldRows();
  NextRows* const next = rows == nullptr ? nullptr : rows->table->next();
  // In plain memory the bytes stay, so readers need not have left.
  if (next == nullptr && directory_ == nullptr) return absl::OkStatus();
  windows_.WaitForReaders();  // Of rows that were live.
  if (next != nullptr) next->Clear();
  if (directory_ != nullptr) directory_->EndDiscard(HeldRings());
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Sync() {
  if (directory_ == nullptr) return absl::OkStatus();
  // No append may be in flight while the record goes to the disk.
  absl::MutexLock alone(&alone_mutex_);
  return directory_->Sync();
}

absl::Status DenseStorageImpl::BuildLiveEvent(const LaneRings& rings,
                                              const Rows* rows,
                                              WriteScratch* scratch) {
  scratch->event.Clear();
  rings.LiveRanges(&scratch->plan.written);
  ExpandRanges(scratch->plan.written, &scratch->slots);
  if (rows == nullptr) return absl::OkStatus();
  return scratch->event.FromTable(rows->events, *rows->table, scratch->slots);
}

void DenseStorageImpl::Attach(WriteObserver* observer,
                              const WriteScratch& scratch) {
  observer->OnAttach(lanes(), HeldRings().cursors());
  if (scratch.plan.written.empty()) return;
  observer->OnWrite(
      scratch.event.Event(/*is_append=*/true, {}, scratch.plan.written));
}

void DenseStorageImpl::AttachAllAgain(WriteScratch* scratch) {
  last_save_.reset();  // Whatever rows a device has damaged.
  // Where the device cannot even be read, observers learn of the slots only.
  if (!BuildLiveEvent(HeldRings(), HeldRows(), scratch).ok()) {
    scratch->event.Clear();
  }
  for (WriteObserver* observer : observers_) Attach(observer, *scratch);
}

absl::Status DenseStorageImpl::AddObserver(WriteObserver* observer) {
  if (observer == nullptr) {
    return absl::InvalidArgumentError(
        "Storage::AddObserver: observer: got null, want an observer");
  }
  absl::MutexLock alone(&alone_mutex_);
  if (std::find(observers_.begin(), observers_.end(), observer) !=
      observers_.end()) {
    return absl::FailedPreconditionError(
        "Storage::AddObserver: observer: got one that is there already, "
        "want another; remove it first");
  }
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  RILL_RETURN_IF_ERROR(BuildLiveEvent(HeldRings(), HeldRows(), &scratch));
  observers_.push_back(observer);
  Attach(observer, scratch);
  return absl::OkStatus();
}

void DenseStorageImpl::RemoveObserver(WriteObserver* observer) {
  absl::MutexLock alone(&alone_mutex_);
  observers_.erase(std::remove(observers_.begin(), observers_.end(), observer),
                   observers_.end());
}

}  // namespace rill::storage_internal
