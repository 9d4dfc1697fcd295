// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/write_path.h"

#include <algorithm>
#include <utility>

#include "rill/base/catch_exceptions.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/replay/rows/trajectory_cut.h"
#include "rill/replay/rows/write_capture.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensors/shape.h"

namespace rill::replay_internal {

WritePath::WritePath(Options options)
    : storage_(std::move(options.storage)),
      writer_(std::move(options.writer)),
      sampler_(options.sampler),
      transforms_(options.transforms),
      drawn_rows_(options.drawn_rows),
      rate_limiter_(std::move(options.rate_limiter)),
      rate_limit_timeout_(options.rate_limit_timeout),
      counter_(drawn_rows_),
      patcher_(storage_.get(), sampler_, writer_.get(), drawn_rows_),
      sources_(storage_.get()) {}

WritePath::~WritePath() {
  if (is_sampler_attached_) storage_->RemoveObserver(sampler_->observer());
  if (is_counter_attached_) storage_->RemoveObserver(&counter_);
  if (are_sources_attached_) storage_->RemoveObserver(&sources_);
}

absl::StatusOr<std::unique_ptr<WritePath>> WritePath::Create(Options options) {
  auto path = std::unique_ptr<WritePath>(new WritePath(std::move(options)));
  RILL_RETURN_IF_ERROR(path->Attach());
  return path;
}

absl::Status WritePath::Attach() {
  RILL_RETURN_IF_ERROR(writer_->Attach(storage_))
      << "ReplayBuffer::Create: writer";
  // The sampler before the counter: when the counter lets DrawnRows go on, the
  // sampler has been notified.
  RILL_RETURN_IF_ERROR(storage_->AddObserver(sampler_->observer()))
      << "ReplayBuffer::Create: sampler";
  is_sampler_attached_ = true;
  RILL_RETURN_IF_ERROR(storage_->AddObserver(&counter_));
  is_counter_attached_ = true;
  // Rows in no order have no trajectories that somebody goes on with.
  if (!writer_->traits().keeps_order) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(storage_->AddObserver(&sources_));
  are_sources_attached_ = true;
  return absl::OkStatus();
}

absl::StatusOr<WritePath::Permit> WritePath::AwaitInsert(int64_t rows) const {
  if (rate_limiter_ == nullptr || rows == 0) return Permit();
  return rate_limiter_->AwaitInsert(
      rows, Clock::System().Now() + rate_limit_timeout_);
}

absl::StatusOr<WritePath::Permit> WritePath::AwaitSample(int64_t items) const {
  if (rate_limiter_ == nullptr) return Permit();
  return rate_limiter_->AwaitSample(
      items, Clock::System().Now() + rate_limit_timeout_);
}

absl::StatusOr<TensorDict> WritePath::Unsqueezed(
    const TensorDict& batch) const {
  if (batch.batch_shape().rank() != 1) return batch;
  if (storage_->lanes().count != 1) {
    return InvalidArgument(
        "ReplayBuffer::Extend: batch shape: got ",
        batch.batch_shape().ToString(),
        ", want [lanes, time]: Options::lanes of the storage is ",
        storage_->lanes().count);
  }
  return batch.Unsqueeze(0);
}

// Only where there are transforms, or none was asked yet whether it can work on
// these rows.
absl::StatusOr<ExtendResult> WritePath::TransformAndStore(
    const TensorDict& batch, const WriteInfo& info, uint64_t batches_drawn) {
  RILL_ASSIGN_OR_RETURN(TensorDict rows, Unsqueezed(batch));
  RILL_ASSIGN_OR_RETURN(
      const TransformStage::Undo undo,
      transforms_->Inverse(batches_drawn, &rows, info.first_lane));
  const TensorDictSpec spec = storage_->spec();
  // A storage without a spec takes that of these rows only if they get stored,
  // so nothing is adopted yet.
  const absl::Status checked =
      spec.empty() ? transforms_->CheckRows(TensorDictSpec::Of(rows),
                                            /*is_stored=*/false)
                   : transforms_->CheckRows(spec, /*is_stored=*/true);
  absl::StatusOr<ExtendResult> result =
      checked.ok() ? Store(rows, info) : checked;
  // All or nothing includes what the inverses learned.
  if (!result.ok()) transforms_->TakeBack(undo);
  return result;
}

absl::StatusOr<ExtendResult> WritePath::Store(const TensorDict& rows,
                                              const WriteInfo& info) {
  const Shape& shape = rows.batch_shape();
  const bool is_flat = shape.rank() == 1;
  constexpr absl::string_view kDims[] = {"lane", "step"};
  RILL_RETURN_IF_ERROR(
      CheckFiniteIfAsked("ReplayBuffer::Extend", rows,
                         absl::MakeConstSpan(kDims).subspan(is_flat ? 1 : 0)));
  AppendWindow window;
  window.lanes = storage_->lanes();
  window.first_lane = info.first_lane;
  // The storage refuses other shapes. No more rows are overwritten than there
  // are.
  window.num_lanes =
      is_flat || shape.rank() == 0 ? 1 : std::min(shape[0], window.lanes.count);
  window.steps = shape.rank() == 0
                     ? 0
                     : std::min(shape[is_flat ? 0 : 1], window.lanes.capacity);
  int64_t steps_in_window = 0;
  drawn_rows_->BeginWrite();
  // Rows that such a writer replaces are not known before, so it waits for all
  // gathers and keeps the ticket.
  if (!writer_->traits().appends_all) {
    drawn_rows_->WaitForAll();
  } else if (storage_->traits().asks_before_overwriting) {
    // The storage asks for each window, behind the ticket.
    drawn_rows_->WillRetire(window.rows());
  } else {
    // Read after BeginWrite, so that cursors count all that had ended by then.
    if (drawn_rows_->HoldsAny()) window.cursors = storage_->cursors();
    steps_in_window = window.steps;
    drawn_rows_->WaitForRows(std::move(window));
  }
  absl::StatusOr<ExtendResult> result = CatchExceptions(
      [&] { return writer_->Extend(rows, info); }, "Writer::Extend");
  drawn_rows_->EndWrite(steps_in_window);
  if (result.ok()) rows_written_ += result->rows_written;
  return result;
}

absl::StatusOr<ExtendResult> WritePath::Extend(const TensorDict& batch,
                                               const WriteInfo& info,
                                               uint64_t batches_drawn,
                                               std::vector<Draw>* rows) {
  if (rows != nullptr) rows->clear();
  const auto write = [&] {
    // A storage notifies observers on the thread that writes, so this sees the
    // events of this write alone.
    std::optional<WriteCapture> capture;
    if (rows != nullptr) capture.emplace(&counter_, sampler_, rows);
    return transforms_->is_empty() && transforms_->is_checked()
               ? Store(batch, info)
               : TransformAndStore(batch, info, batches_drawn);
  };
  const auto cut = [&](LaneRange lanes) {
    // Rows that tell no trajectories have none open: lanes are endless, or the
    // write is refused where that matters.
    return storage_->traits().event_keys.TellTrajectories(storage_->spec())
               ? Cut(lanes)
               : absl::OkStatus();
  };
  absl::StatusOr<ExtendResult> result =
      are_sources_attached_
          ? sources_.Write(batch.batch_shape(), info, cut, write)
          : write();
  if (!result.ok() && rows != nullptr) rows->clear();
  return result;
}

absl::Status WritePath::WriteAt(absl::Span<const Slot> slots,
                                const TensorDict& rows) {
  RILL_RETURN_IF_ERROR(
      CheckFiniteIfAsked("ReplayBuffer::WriteAt", rows, {"row"}));
  drawn_rows_->BeginWrite();
  drawn_rows_->WaitForRows(slots);
  const absl::Status status = CatchExceptions(
      [&] { return writer_->WriteAt(slots, rows); }, "Writer::WriteAt");
  drawn_rows_->EndWrite(0);
  return status;
}

absl::Status WritePath::CutWithTicket(LaneRange lanes) {
  RILL_ASSIGN_OR_RETURN(
      const TrajectoryCut cut,
      TrajectoryCut::Plan(*storage_, lanes, sampler_->traits().needs_order));
  if (cut.slots.empty()) return absl::OkStatus();
  drawn_rows_->WaitForRows(cut.slots);
  return writer_->WriteInPlace(cut.slots, cut.rows, InPlace::kPatch);
}

absl::Status WritePath::Cut(LaneRange lanes) {
  // Stored rows in no order of time have no trajectories to cut.
  if (writer_->traits().keeps_order) {
    drawn_rows_->BeginWrite();
    const absl::Status status = CatchExceptions(
        [&] { return CutWithTicket(lanes); }, "Writer::WriteInPlace");
    drawn_rows_->EndWrite(0);
    RILL_RETURN_IF_ERROR(status);
  }
  // Should it fail, the caller cuts again, and stored rows stay as they are.
  return transforms_->CutLanes(lanes);
}

absl::Status WritePath::Clear() {
  RILL_RETURN_IF_ERROR(storage_->Clear());
  RILL_RETURN_IF_ERROR(transforms_->Clear());
  if (rate_limiter_ == nullptr) return absl::OkStatus();
  return rate_limiter_->SetCounts({});
}

}  // namespace rill::replay_internal
