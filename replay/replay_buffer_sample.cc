// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's samples, and the priorities that come back for them.
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/functional/function_ref.h"
#include "absl/log/absl_log.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/rows/device_priorities.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/prioritized/priority_updater.h"

namespace rill {

namespace {

// Each draw has as many rows, of whose lists beside them most lengths are
// known, and its unit leaves its kernels to others.
bool MayFixLists(const replay_internal::BufferParts& parts) {
  const UnitTransform* const unit = parts.unit_transform.get();
  const PlanLayout& layout = parts.sampler->traits().layout;
  return layout.rows_a_draw().has_value() &&
         (unit == nullptr ? layout.context.empty()
                          : unit->traits().leaves_launches);
}

}  // namespace

absl::Status ReplayBuffer::State::CheckBatchSize() const {
  if (parts->samples->batch_size() > 0) return absl::OkStatus();
  return FailedPrecondition(
      "ReplayBuffer::Sample: Options::batch_size: got 0, want > 0; set it, or "
      "call Sample(batch_size)");
}

absl::Status ReplayBuffer::State::CheckCanCapture() const {
  constexpr absl::string_view kCaller = "ReplayBuffer::CaptureSample: ";
  const Device device = parts->storage->device();
  if (device.is_cpu() || !parts->storage->traits().shows_tables) {
    return FailedPrecondition(kCaller, "storage: got one with rows on ",
                              device.ToString(),
                              device.is_cpu() ? "" : " that shows no tables",
                              ", want a DenseStorage with rows on a device");
  }
  const Device placed = parts->placement->device().value_or(device);
  if (placed != device) {
    return FailedPrecondition(kCaller, "Options::device: got ",
                              placed.ToString(), " for rows on ",
                              device.ToString(), ", want none or the same");
  }
  if (parts->samples->prefetch() > 0) {
    return FailedPrecondition(kCaller, "Options::prefetch: got ",
                              parts->samples->prefetch(),
                              ", want 0: a graph has one batch");
  }
  if (parts->sampler->traits().may_be_short) {
    return FailedPrecondition(
        kCaller, "sampler: got ", parts->sampler->name(),
        ", some of whose batches have fewer draws, want one whose batches all "
        "have as many: set drop_last where it has that option, or take Sample");
  }
  if (!MayFixLists(*parts)) {
    return FailedPrecondition(
        kCaller, "sampler: got ", parts->sampler->name(),
        " over a unit that calls functions, or whose rows differ in number "
        "from batch to batch, want single rows, or slices or sequences of one "
        "length: strict or padded ones");
  }
  const replay_internal::TransformStage& transforms = *parts->transforms;
  // Without rows, which Sample misses, it is not known yet.
  if (transforms.is_checked() && !transforms.is_empty() &&
      transforms.chain() == nullptr) {
    return FailedPrecondition(
        kCaller, "transforms: got [", absl::StrJoin(transforms.Names(), ", "),
        "], which are no part of the gather on ", device.ToString(),
        ", want none, or maps of single rows alone (docs/transforms.md)");
  }
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::WithPermit(
    int64_t items, absl::FunctionRef<absl::Status()> sample) {
  // Before the pause is shared: a call that waits for writers must not keep a
  // Save or a Clear waiting.
  RILL_ASSIGN_OR_RETURN(auto permit, parts->writes->AwaitSample(items));
  absl::ReaderMutexLock pause(&pause_mutex);
  if (!parts->transforms->is_checked()) {
    RILL_RETURN_IF_ERROR(parts->transforms->CheckRows(parts->storage->spec(),
                                                      /*is_stored=*/true));
  }
  RILL_RETURN_IF_ERROR(sample());
  // Items count when they are handed out; an error gives the permit back.
  if (permit.has_value()) permit->Commit();
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::SampleInto(
    int64_t items, replay_internal::PlacedBatch* out) {
  return WithPermit(items, [&] { return parts->samples->Take(items, out); });
}

absl::Status ReplayBuffer::State::SampleAndWait(int64_t items,
                                                TensorDict* out) {
  replay_internal::PlacedBatch placed;
  // The caller's tensors go in and come back, after an error too, so that they
  // are reused.
  std::swap(placed.rows, *out);
  const absl::Status status = SampleInto(items, &placed);
  std::swap(placed.rows, *out);
  RILL_RETURN_IF_ERROR(status);
  const int64_t batch_size = parts->samples->batch_size();
  if (items != batch_size && batch_size > 0) {
    absl::call_once(batch_size_warning, [&] {
      ABSL_LOG(WARNING) << "ReplayBuffer::Sample: batch size: got " << items
                        << " where Options::batch_size is " << batch_size
                        << "; the call's is taken (said once a buffer)";
    });
  }
  if (placed.copied == nullptr) return NoteDraw(items, placed.digest);
  RILL_RETURN_IF_ERROR(placed.copied->Synchronize());
  return NoteDraw(items, placed.digest);
}

absl::Status ReplayBuffer::State::NoteDraw(int64_t items,
                                           uint32_t digest) const {
  if (recorder == nullptr) return absl::OkStatus();
  return recorder->Note(
      Decision::Kind::kDraw, part, {items},
      {replay_internal::BytesOf(absl::MakeConstSpan(&digest, 1))});
}

absl::Status ReplayBuffer::State::UpdatePriorities(
    absl::Span<const Draw> rows, absl::Span<const float> priorities) {
  absl::ReaderMutexLock pause(&pause_mutex);
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] { return parts->sampler->UpdatePriorities(rows, priorities); },
      parts->sampler->name(), "::UpdatePriorities"));
  if (recorder == nullptr) return absl::OkStatus();
  const uint32_t digest = replay_internal::PriorityDigest(rows, priorities);
  const absl::string_view piece =
      replay_internal::BytesOf(absl::MakeConstSpan(&digest, 1));
  if (recorded_updates.fetch_add(1, std::memory_order_relaxed) %
          kCountedUpdate ==
      0) {
    return recorder->Note(Decision::Kind::kPriorities, part,
                          PriorityCounts::Of(priorities).ToNumbers(), {piece});
  }
  return recorder->Note(Decision::Kind::kPriorities, part,
                        {static_cast<int64_t>(priorities.size())}, {piece});
}

absl::StatusOr<TensorDictSpec> ReplayBuffer::SampleSpec() const {
  const replay_internal::BufferParts& parts = *state_->parts;
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec,
                        parts.transforms->SampleSpec(parts.storage->spec()));
  if (parts.placement->device().has_value()) {
    spec.set_device(parts.placement->device());
  }
  return spec;
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample(int64_t batch_size) {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(state_->SampleAndWait(batch_size, &batch));
  return batch;
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample() {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(&batch));
  return batch;
}

absl::Status ReplayBuffer::SampleInto(TensorDict* out) {
  if (out != nullptr) {
    RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  }
  return SampleInto(batch_size(), out);
}

absl::Status ReplayBuffer::SampleInto(int64_t batch_size, TensorDict* out) {
  if (out == nullptr) {
    return InvalidArgument(
        "ReplayBuffer::SampleInto: out: got null, want a TensorDict");
  }
  return state_->SampleAndWait(batch_size, out);
}

absl::StatusOr<ReplayBuffer::PendingBatch> ReplayBuffer::SamplePending() {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  replay_internal::PlacedBatch placed;
  RILL_RETURN_IF_ERROR(state_->SampleInto(batch_size(), &placed));
  RILL_RETURN_IF_ERROR(state_->NoteDraw(batch_size(), placed.digest));
  return PendingBatch{.batch = std::move(placed.rows),
                      .copied = std::move(placed.copied)};
}

struct ReplayBuffer::CapturedSample::Parts {
  State* buffer;
  std::unique_ptr<replay_internal::SampleQueue::Captured> captured;
};

ReplayBuffer::CapturedSample::CapturedSample(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}
ReplayBuffer::CapturedSample::~CapturedSample() = default;

const TensorDict& ReplayBuffer::CapturedSample::batch() const {
  return parts_->captured->rows();
}

absl::StatusOr<std::unique_ptr<ReplayBuffer::CapturedSample>>
ReplayBuffer::CaptureSample() {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  auto parts = std::make_unique<CapturedSample::Parts>();
  parts->buffer = state_.get();
  RILL_RETURN_IF_ERROR(state_->WithPermit(batch_size(), [&]() -> absl::Status {
    // Behind WithPermit's look at the rows, which says what is a chain.
    RILL_RETURN_IF_ERROR(state_->CheckCanCapture());
    RILL_ASSIGN_OR_RETURN(parts->captured, state_->parts->samples->Capture());
    return absl::OkStatus();
  }));
  RILL_RETURN_IF_ERROR(
      state_->NoteDraw(batch_size(), parts->captured->digest()));
  return std::unique_ptr<CapturedSample>(new CapturedSample(std::move(parts)));
}

absl::Status ReplayBuffer::CapturedSample::Replay(
    std::shared_ptr<const Event>* end) {
  const replay_internal::BufferParts& buffer = *parts_->buffer->parts;
  RILL_ASSIGN_OR_RETURN(const Stream stream,
                        CurrentStream(buffer.storage->device()));
  return parts_->buffer->WithPermit(
      buffer.samples->batch_size(), [&]() -> absl::Status {
        RILL_ASSIGN_OR_RETURN(
            auto made, buffer.samples->Replay(stream, parts_->captured.get()));
        if (end != nullptr) *end = std::move(made);
        return parts_->buffer->NoteDraw(buffer.samples->batch_size(),
                                        parts_->captured->digest());
      });
}

absl::Status ReplayBuffer::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  constexpr absl::string_view kCaller = "ReplayBuffer::UpdatePriorities";
  RILL_ASSIGN_OR_RETURN(std::vector<Draw> draws,
                        replay_internal::DrawsOf(kCaller, batch));
  std::vector<float> spread;
  if (priorities.size() != draws.size()) {
    RILL_ASSIGN_OR_RETURN(std::vector<Draw> anchors,
                          replay_internal::AnchorsOf(kCaller, batch, draws));
    if (priorities.size() == anchors.size()) {
      draws = std::move(anchors);
    } else if (priorities.size() == 1) {
      spread.assign(draws.size(), priorities[0]);
      priorities = spread;
    }
  }
  return state_->UpdatePriorities(draws, priorities);
}

absl::Status ReplayBuffer::UpdatePriorities(const TensorDict& batch,
                                            const Tensor& priorities) {
  constexpr absl::string_view kCaller = "ReplayBuffer::UpdatePriorities";
  PriorityUpdater* const updater =
      state_->parts->sampler->traits().priority_updater.get();
  RILL_ASSIGN_OR_RETURN(
      const bool lie_together,
      replay_internal::LieWithPriorities(kCaller, updater, batch, priorities));
  if (lie_together) {
    absl::ReaderMutexLock pause(&state_->pause_mutex);
    RILL_RETURN_IF_ERROR(replay_internal::UpdateWhereTheyLie(
        kCaller, *updater, batch, priorities));
    return state_->Note(Decision::Kind::kPriorities,
                        {priorities.shape().num_elements()});
  }
  RILL_ASSIGN_OR_RETURN(const Tensor on_host,
                        replay_internal::PrioritiesOnHost(kCaller, priorities));
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> values,
                        on_host.Flat<float>());
  return UpdatePriorities(batch, values);
}

absl::Status ReplayBuffer::UpdatePriorities(
    absl::Span<const Draw> rows, absl::Span<const float> priorities) {
  return state_->UpdatePriorities(rows, priorities);
}

std::optional<PriorityMass> ReplayBuffer::priority_mass() const {
  const PriorityMassGauge* const mass =
      state_->parts->sampler->traits().priority_mass.get();
  if (mass == nullptr) return std::nullopt;
  return mass->Get();
}

absl::StatusOr<int64_t> ReplayBuffer::BatchesLeft() const {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  return state_->parts->samples->BatchesLeft();
}

absl::StatusOr<TensorDict> ReplayBuffer::ReadAll(LiveRowsShape shape) {
  absl::MutexLock pause(&state_->pause_mutex);
  return ReadLiveRows(*state_->parts->storage, shape);
}

}  // namespace rill
