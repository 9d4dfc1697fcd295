// SPDX-License-Identifier: Apache-2.0
// The writing side of SerializedStorage: check and stage all that may fail,
// retire, commit, tell.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/storage/serialized/serialized_storage.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {

absl::StatusOr<ExtendResult> SerializedStorage::Extend(const TensorDict& batch,
                                                       const WriteInfo& info) {
  return ExtendWith(batch, info, [](RowStore*) { return absl::OkStatus(); });
}

absl::StatusOr<ExtendResult> SerializedStorage::ExtendWith(
    const TensorDict& batch, const WriteInfo& info, PrepareFn prepare) {
  RILL_ASSIGN_OR_RETURN(const BatchRows extent,
                        BatchRows::Find(lanes(), batch, info));
  const LaneSteps append = {info.first_lane, extent.num_lanes, extent.steps};
  absl::MutexLock write_lock(&write_mutex_);
  ThreadWriteScratch scratch;
  std::shared_ptr<Rows> rows = HeldRows();
  if (rows == nullptr) {
    if (append.count * append.steps == 0) return ExtendResult();
    const TensorDictSpec spec = TensorDictSpec::Of(batch);
    if (spec.empty()) {
      return absl::InvalidArgumentError(
          "Storage::Extend: keys: got none, want a tensor at least");
    }
    RILL_ASSIGN_OR_RETURN(rows, MakeRows(spec));
  }
  return Append(batch, append, extent, rows, prepare, &*scratch);
}

absl::StatusOr<ExtendResult> SerializedStorage::Append(
    const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
    const std::shared_ptr<Rows>& rows, PrepareFn prepare,
    WriteScratch* scratch) {
  AppendPlan& plan = scratch->plan;
  // Whatever fails, nothing stays staged. After Commit there is nothing to
  // drop.
  const auto drop = absl::MakeCleanup([&rows] { rows->store->Drop(); });
  RILL_RETURN_IF_ERROR(scratch->leaves.Bind("Storage::Extend", rows->spec,
                                            rows->tree, batch,
                                            /*allow_part=*/false));
  RILL_RETURN_IF_ERROR(prepare(rows->store.get()));
  // Nothing to write, but what does not fit is still an error.
  if (append.count * append.steps == 0) return ExtendResult();
  RILL_RETURN_IF_ERROR(HeldRings().CheckAppend("Storage::Extend", append));
  HeldRings().PlanAppend(append, {}, &plan);
  // `newest` holds the tensors that the leaves point to until Commit has
  // copied.
  TensorDict newest;  // Of a batch that is longer than a lane.
  BatchRows kept = extent;
  kept.steps = plan.kept;
  scratch->event.Clear();
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(
        scratch->event.FromBatch(rows->events, scratch->leaves, extent));
    if (plan.dropped > 0) scratch->event.DropAllBut(plan.kept, extent);
  }
  if (plan.dropped > 0) {
    RILL_ASSIGN_OR_RETURN(
        newest, batch.Slice(extent.batch_rank - 1, plan.dropped, extent.steps));
    RILL_RETURN_IF_ERROR(scratch->leaves.Bind("Storage::Extend", rows->spec,
                                              rows->tree, newest,
                                              /*allow_part=*/false));
  }
  RILL_RETURN_IF_ERROR(scratch->leaves.PrepareOnHost(kept.batch_rank));
  RILL_RETURN_IF_ERROR(StageRuns(kept, rows.get(), scratch));

  const WriteEvent event =
      scratch->event.Event(/*is_append=*/true, plan.retired, plan.written);
  if (!plan.retired.empty()) {
    for (WriteObserver* observer : observers_) observer->OnRetire(event);
  }
  {
    absl::MutexLock state(&state_mutex_);
    rows->store->Commit();
    rows_ = rows;
    rings_.Append(append);
  }
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return ExtendResult{.rows_written = extent.num_lanes * plan.kept,
                      .rows_dropped = extent.num_lanes * plan.dropped};
}

absl::Status SerializedStorage::StageRuns(const BatchRows& kept, Rows* rows,
                                          WriteScratch* scratch) const {
  std::vector<LeafBatch>& places = scratch->places;
  const int64_t dropped = scratch->plan.dropped;
  int64_t lane = 0;  // Of the batch; of its steps so many are staged.
  int64_t step = 0;
  // The plan has the ranges lane after lane, one or two each; `lane` and `step`
  // follow them through the batch.
  for (const SlotRange& range : scratch->plan.written) {
    places.clear();
    for (const BatchLeaf& leaf : scratch->leaves.leaves()) {
      if (leaf.ready->num_elements() == 0) continue;  // And no address.
      const auto strides = leaf.ready->strides_bytes();
      const int64_t step_stride = strides[kept.batch_rank - 1];
      const int64_t lane_stride = kept.batch_rank == 1 ? 0 : strides[0];
      places.push_back(
          {leaf.leaf,
           leaf.ready->raw_data() + lane * lane_stride + step * step_stride,
           step_stride});
    }
    RILL_RETURN_IF_ERROR(rows->store->StageAppend(
        {.lane = lanes().LaneOf(range.first),
         .position = lanes().PositionOf(range.first),
         .steps = range.count,
         .first_row = lane * (dropped + kept.steps) + dropped + step},
        places));
    step += range.count;
    if (step < kept.steps) continue;
    step = 0;
    ++lane;
  }
  return absl::OkStatus();
}

absl::Status SerializedStorage::WriteInPlace(absl::Span<const Slot> slots,
                                             const TensorDict& rows,
                                             InPlace kind) {
  return WriteInPlaceWith(slots, rows, kind, /*is_whole=*/true);
}

absl::Status SerializedStorage::WriteInPlaceWith(
    absl::Span<const Slot> slots, const TensorDict& rows, InPlace kind,
    bool is_whole, std::optional<PrepareFn> prepare) {
  const Shape want = {static_cast<int64_t>(slots.size())};
  if (!(rows.batch_shape() == want)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Storage::WriteAt: batch shape: got ", rows.batch_shape().ToString(),
        ", want ", want.ToString(), ", one row a slot"));
  }
  absl::MutexLock write_lock(&write_mutex_);
  ThreadWriteScratch scratch;
  scratch->in_place = kind;
  return Overwrite(slots, rows, is_whole, prepare, &*scratch);
}

absl::Status SerializedStorage::Overwrite(absl::Span<const Slot> slots,
                                          const TensorDict& rows, bool is_whole,
                                          std::optional<PrepareFn> prepare,
                                          WriteScratch* scratch) {
  Rows* const stored = HeldRows().get();
  RILL_RETURN_IF_ERROR(HeldRings().CheckLive("Storage::WriteAt", slots));
  if (stored == nullptr) return absl::OkStatus();  // No slots, no keys yet.
  RowStore& store = *stored->store;
  const auto drop = absl::MakeCleanup([&store] { store.Drop(); });
  BatchLeaves& leaves = scratch->leaves;
  leaves.Clear();
  if (!prepare.has_value() || !rows.empty()) {
    RILL_RETURN_IF_ERROR(leaves.Bind("Storage::WriteAt", stored->spec,
                                     stored->tree, rows, /*allow_part=*/true));
  }
  if (prepare.has_value()) {
    RILL_RETURN_IF_ERROR((*prepare)(&store));
  }
  if (slots.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(leaves.PrepareOnHost(/*batch_rank=*/1));
  std::vector<LeafBatch>& places = scratch->places;
  places.clear();
  for (const BatchLeaf& leaf : leaves.leaves()) {
    if (leaf.ready->num_elements() == 0) continue;  // And no address.
    places.push_back(
        {leaf.leaf, leaf.ready->raw_data(), leaf.ready->strides_bytes()[0]});
  }
  RILL_RETURN_IF_ERROR(store.StagePatch(slots, places));
  std::vector<SlotRange>& written = scratch->plan.written;
  JoinSlots(lanes(), slots, &written);
  scratch->event.Clear();
  const auto make_event = [&] {
    WriteEvent event =
        scratch->event.Event(/*is_append=*/false, written, written);
    event.is_patch = scratch->in_place == InPlace::kPatch;
    event.is_replacement =
        !event.is_patch && is_whole &&
        leaves.leaves().size() == stored->spec.leaves().size();
    return event;
  };
  // Without values: observers receive those with the write.
  const WriteEvent retire = make_event();
  for (WriteObserver* observer : observers_) observer->OnRetire(retire);
  {
    absl::MutexLock state(&state_mutex_);
    store.Commit();
  }
  if (observers_.empty()) return absl::OkStatus();
  // Values are read after the commit: of a slot that is named twice both are
  // then the one that stays.
  if (!BuildEvent(slots, &leaves, scratch).ok()) {
    // The rows are written; observers start anew.
    AttachAllAgain(scratch);
    return absl::OkStatus();
  }
  const WriteEvent event = make_event();
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return absl::OkStatus();
}

absl::Status SerializedStorage::Clear() {
  absl::MutexLock write_lock(&write_mutex_);
  for (WriteObserver* observer : observers_) observer->OnClear();
  absl::MutexLock state(&state_mutex_);
  rings_.Clear();
  if (rows_ != nullptr) rows_->store->Clear();
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
