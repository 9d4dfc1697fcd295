// SPDX-License-Identifier: Apache-2.0
// The writing side of DenseStorage: check and stage everything that may fail,
// retire, copy in windows, publish.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
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
  if (extent.first_step != 0) return false;
  if (extent.steps == 1) return true;
  return std::all_of(leaves.begin(), leaves.end(), [&](const BatchLeaf& leaf) {
    const BatchStrides strides = StridesOf(*leaf.ready, extent);
    return strides.lane == strides.step * extent.steps;
  });
}

}  // namespace

absl::StatusOr<BatchRows> DenseStorageImpl::CheckBatchShape(
    const TensorDict& batch, const WriteInfo& info) const {
  const Shape& shape = batch.batch_shape();
  const int64_t first = info.first_lane;
  if (shape.rank() != 2 && !(shape.rank() == 1 && lanes_.count == 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Storage::Extend: batch shape: got ", shape.ToString(),
        ", want [lanes, time]", lanes_.count == 1 ? " or [time]" : ""));
  }
  const int64_t num_lanes = shape.rank() == 2 ? shape[0] : 1;
  if (first < 0 || first > lanes_.count || num_lanes > lanes_.count - first) {
    return absl::InvalidArgumentError(
        absl::StrCat("Storage::Extend: lanes: got ", num_lanes, " from lane ",
                     first, " on, want lanes of [0, ", lanes_.count, ")"));
  }
  return BatchRows{.batch_rank = shape.rank(),
                   .num_lanes = num_lanes,
                   .steps = shape[shape.rank() - 1]};
}

absl::StatusOr<ExtendResult> DenseStorageImpl::Extend(const TensorDict& batch,
                                                      const WriteInfo& info) {
  RILL_ASSIGN_OR_RETURN(const BatchRows extent, CheckBatchShape(batch, info));
  absl::MutexLock write(&write_mutex_);
  auto clear = absl::MakeCleanup(
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { leaves_.Clear(); });
  if (extent.num_lanes * extent.steps > 0) return Append(batch, info, extent);
  // Nothing to write, but what does not fit is still an error.
  if (const Rows* const rows = WriterRows()) {
    RILL_RETURN_IF_ERROR(leaves_.Bind("Storage::Extend", rows->spec(),
                                      rows->tree, batch,
                                      /*allow_part=*/false));
  }
  return ExtendResult();
}

absl::Status DenseStorageImpl::StageBatch(const TensorDict& batch,
                                          const BatchRows& extent, Rows* rows) {
  RILL_RETURN_IF_ERROR(leaves_.Bind("Storage::Extend", rows->spec(), rows->tree,
                                    batch, /*allow_part=*/false));
  RILL_RETURN_IF_ERROR(leaves_.Prepare(*rows->table, extent.batch_rank));
  ExpandRanges(plan_.written, &slots_);
  event_.Clear();
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(event_.FromBatch(rows->events, leaves_, extent));
  }
  NextRows* const next = rows->table->next();
  if (next == nullptr) return absl::OkStatus();
  return next->PlanAppend(
      slots_, extent.num_lanes, extent.steps,
      [&](size_t leaf) ABSL_NO_THREAD_SAFETY_ANALYSIS -> NextRows::Steps {
        const Tensor& tensor = *leaves_.Find(leaf)->ready;
        const BatchStrides strides = StridesOf(tensor, extent);
        return {tensor.raw_data() + extent.first_step * strides.step,
                strides.lane, strides.step};
      });
}

absl::StatusOr<ExtendResult> DenseStorageImpl::Append(const TensorDict& batch,
                                                      const WriteInfo& info,
                                                      const BatchRows& extent) {
  std::unique_ptr<Rows> fresh;
  Rows* rows = WriterRows();
  if (rows == nullptr) {
    const TensorDictSpec spec = TensorDictSpec::Of(batch);
    if (spec.empty()) {
      return absl::InvalidArgumentError(
          "Storage::Extend: keys: got none, want a tensor at least");
    }
    RILL_ASSIGN_OR_RETURN(fresh, MakeRows(spec));
    rows = fresh.get();
  }
  RILL_RETURN_IF_ERROR(WriterRings().CheckAppend(
      "Storage::Extend", info.first_lane, extent.num_lanes, extent.steps));
  WriterRings().PlanAppend(info.first_lane, extent.num_lanes, extent.steps,
                           &plan_);
  BatchRows kept = extent;
  kept.first_step = plan_.dropped;
  kept.steps = plan_.kept;
  RILL_RETURN_IF_ERROR(StageBatch(batch, kept, rows));
  if (directory_ != nullptr) {
    RILL_RETURN_IF_ERROR(directory_->Reserve(plan_.written));
    directory_->Announce({info.first_lane, extent.num_lanes, extent.steps});
  }

  const WriteEvent event =
      event_.Event(/*is_append=*/true, plan_.retired, plan_.written);
  if (!plan_.retired.empty()) {
    for (WriteObserver* observer : observers_) observer->OnRetire(event);
  }
  leases_.End(plan_.written);
  const absl::Status copied = CopyBatch(kept, rows);
  leases_.End(plan_.written);  // Those that were made meanwhile.
  if (!copied.ok()) {
    AttachAllAgain();
    return copied;
  }
  {
    absl::MutexLock lock(&state_mutex_);
    if (fresh != nullptr) rows_ = std::move(fresh);
    rings_.Append(info.first_lane, extent.num_lanes, extent.steps);
    if (directory_ != nullptr) directory_->Commit();
    Publish();
  }
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return ExtendResult{.rows_written = extent.num_lanes * plan_.kept,
                      .rows_dropped = extent.num_lanes * plan_.dropped};
}

absl::Status DenseStorageImpl::WriteInWindows(Rows* rows,
                                              absl::Span<const Slot> slots,
                                              absl::Span<LeafBatch> places) {
  RowTable& table = *rows->table;
  if (!table.device().is_cpu()) return table.Write(slots, places);
  const bool has_next = table.next() != nullptr;
  const size_t max_ranges =
      has_next ? EpochWindows::kMaxRanges / kRangesWithPredecessors
               : EpochWindows::kMaxRanges;
  // Where one window will do, slots_ has the same slots in a better order.
  const int64_t one_window =
      std::min<int64_t>(rows->window_rows, static_cast<int64_t>(max_ranges));
  const bool is_one = static_cast<int64_t>(slots.size()) <= one_window &&
                      slots_.size() <= slots.size();
  for (size_t begin = 0; begin < slots.size();) {
    size_t end = CutWindow(is_one ? slots_ : slots, begin, rows->window_rows,
                           max_ranges, &window_);
    if (is_one) end = slots.size();
    if (has_next) AddPredecessors(lanes_, &window_);
    if (rows->ahead) rows->ahead->BeforeRuns(window_);
    const auto window = windows_.Open(window_);
    RILL_RETURN_IF_ERROR(
        table.Write(slots.subspan(begin, end - begin), places));
    for (LeafBatch& place : places) {
      place.data += static_cast<int64_t>(end - begin) * place.stride;
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::CopyBatch(const BatchRows& extent, Rows* rows) {
  absl::InlinedVector<LeafBatch, 16> places;
  const bool is_flat = IsFlat(leaves_.leaves(), extent);
  const int64_t pieces = is_flat ? 1 : extent.num_lanes;
  const int64_t rows_each = extent.num_lanes * extent.steps / pieces;
  for (int64_t lane = 0; lane < pieces; ++lane) {
    places.clear();
    for (const BatchLeaf& leaf : leaves_.leaves()) {
      if (leaf.ready->num_elements() == 0) continue;  // And no address.
      const BatchStrides strides = StridesOf(*leaf.ready, extent);
      const bool goes_by_lane = is_flat && extent.steps == 1;
      places.push_back({leaf.leaf,
                        leaf.ready->raw_data() + lane * strides.lane +
                            extent.first_step * strides.step,
                        goes_by_lane ? strides.lane : strides.step});
    }
    RILL_RETURN_IF_ERROR(WriteInWindows(
        rows, absl::MakeConstSpan(slots_).subspan(lane * rows_each, rows_each),
        absl::MakeSpan(places)));
  }
  return absl::OkStatus();
}

void DenseStorageImpl::PlanOverwrite(absl::Span<const Slot> slots) {
  slots_.assign(slots.begin(), slots.end());
  WriterRings().SortByAge(&slots_);
  JoinSlots(lanes_, slots_, &plan_.written);
}

absl::Status DenseStorageImpl::WriteAt(absl::Span<const Slot> slots,
                                       const TensorDict& rows) {
  constexpr absl::string_view kCaller = "Storage::WriteAt";
  const Shape want = {static_cast<int64_t>(slots.size())};
  if (!(rows.batch_shape() == want)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kCaller, ": batch shape: got ", rows.batch_shape().ToString(),
        ", want ", want.ToString(), ", one row a slot"));
  }
  absl::MutexLock write(&write_mutex_);
  auto clear = absl::MakeCleanup(
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { leaves_.Clear(); });
  RILL_RETURN_IF_ERROR(WriterRings().CheckLive(kCaller, slots));
  Rows* const stored = WriterRows();
  if (stored == nullptr) return absl::OkStatus();  // No slots, no keys yet.
  RILL_RETURN_IF_ERROR(leaves_.Bind(kCaller, stored->spec(), stored->tree, rows,
                                    /*allow_part=*/true));
  if (slots.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(leaves_.Prepare(*stored->table, /*batch_rank=*/1));
  PlanOverwrite(slots);
  if (NextRows* const next = stored->table->next()) {
    RILL_RETURN_IF_ERROR(next->PlanOverwrite(
        slots_, [&](size_t leaf) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return leaves_.Find(leaf) != nullptr;
        }));
  }
  if (directory_ != nullptr) {
    RILL_RETURN_IF_ERROR(directory_->Reserve(plan_.written));
    stored->ahead->BeforeRows(slots);
  }

  event_.Clear();
  WriteEvent event =
      event_.Event(/*is_append=*/false, plan_.written, plan_.written);
  for (WriteObserver* observer : observers_) observer->OnRetire(event);
  leases_.End(plan_.written);
  absl::InlinedVector<LeafBatch, 16> places;
  for (const BatchLeaf& leaf : leaves_.leaves()) {
    if (leaf.ready->num_elements() == 0) continue;  // And no address.
    places.push_back(
        {leaf.leaf, leaf.ready->raw_data(), leaf.ready->strides_bytes()[0]});
  }
  if (directory_ != nullptr) directory_->BeginInPlace();
  absl::Status written = WriteInWindows(stored, slots, absl::MakeSpan(places));
  if (directory_ != nullptr) directory_->EndInPlace();
  leases_.End(plan_.written);  // Those that were made meanwhile.
  if (written.ok() && !observers_.empty()) {
    written =
        event_.FromTable(stored->events, *stored->table, slots_, &leaves_);
  }
  if (!written.ok()) {
    AttachAllAgain();
    return written;
  }
  event = event_.Event(/*is_append=*/false, plan_.written, plan_.written);
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Clear() {
  absl::MutexLock write(&write_mutex_);
  for (WriteObserver* observer : observers_) observer->OnClear();
  leases_.EndAll();
  {
    absl::MutexLock lock(&state_mutex_);
    rings_.Clear();
    Publish();
    if (directory_ != nullptr) directory_->Set(MarksOf(rings_));
  }
  const Rows* const rows = WriterRows();
  if (rows == nullptr || rows->table->next() == nullptr) {
    return absl::OkStatus();
  }
  windows_.WaitForReaders();  // Of rows that were live.
  rows->table->next()->Clear();
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Sync() {
  if (directory_ == nullptr) return absl::OkStatus();
  // No append may be in flight while the record goes to the disk.
  absl::MutexLock write(&write_mutex_);
  return directory_->Sync();
}

absl::Status DenseStorageImpl::BuildLiveEvent(const LaneRings& rings,
                                              const Rows* rows) {
  event_.Clear();
  rings.LiveRanges(&plan_.written);
  ExpandRanges(plan_.written, &slots_);
  if (rows == nullptr) return absl::OkStatus();
  return event_.FromTable(rows->events, *rows->table, slots_);
}

void DenseStorageImpl::Attach(WriteObserver* observer) {
  observer->OnAttach(lanes_, WriterRings().cursors());
  if (plan_.written.empty()) return;
  observer->OnWrite(event_.Event(/*is_append=*/true, {}, plan_.written));
}

void DenseStorageImpl::AttachAllAgain() {
  // Where the device cannot even be read, observers learn of the slots only.
  if (!BuildLiveEvent(WriterRings(), WriterRows()).ok()) event_.Clear();
  for (WriteObserver* observer : observers_) Attach(observer);
}

absl::Status DenseStorageImpl::AddObserver(WriteObserver* observer) {
  if (observer == nullptr) {
    return absl::InvalidArgumentError(
        "Storage::AddObserver: observer: got null, want an observer");
  }
  absl::MutexLock write(&write_mutex_);
  if (std::find(observers_.begin(), observers_.end(), observer) !=
      observers_.end()) {
    return absl::FailedPreconditionError(
        "Storage::AddObserver: observer: got one that is there already, "
        "want another; remove it first");
  }
  RILL_RETURN_IF_ERROR(BuildLiveEvent(WriterRings(), WriterRows()));
  observers_.push_back(observer);
  Attach(observer);
  return absl::OkStatus();
}

void DenseStorageImpl::RemoveObserver(WriteObserver* observer) {
  absl::MutexLock write(&write_mutex_);
  observers_.erase(std::remove(observers_.begin(), observers_.end(), observer),
                   observers_.end());
}

}  // namespace rill::storage_internal
