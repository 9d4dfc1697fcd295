// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's samples, and the priorities that come back for them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/log/absl_log.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/sample_origins.h"

namespace rill {
absl::Status ReplayBuffer::State::CheckBatchSize() const {
  if (batch_size > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "ReplayBuffer::Sample: Options::batch_size: got 0, want > 0; set it, or "
      "call Sample(batch_size)");
}

absl::StatusOr<std::unique_ptr<ReplayBuffer::State::Job>>
ReplayBuffer::State::Draw(int64_t items) {
  std::unique_ptr<Job> job;
  if (spare.empty()) {
    job = std::make_unique<Job>(reader_options);
  } else {
    job = std::move(spare.back());
    spare.pop_back();
  }
  const absl::Status status = sampler->Plan(
      {.batch_size = items, .seed = seed, .batch_number = batch_number},
      &job->plan);
  if (!status.ok()) {
    spare.push_back(std::move(job));
    return status;
  }
  gate.Hold(&job->plan);
  job->epoch = sampler->LastEpoch().value_or(0);
  job->number = batch_number++;
  job->items = items;
  job->stage = Job::Stage::kDrawn;
  return job;
}

absl::StatusOr<std::unique_ptr<ReplayBuffer::State::Job>>
ReplayBuffer::State::TakeNext(int64_t items, bool* is_mine) {
  std::unique_ptr<Job> job;
  if (items == batch_size && !ahead.empty()) {
    job = std::move(ahead.front());
    ahead.erase(ahead.begin());
  } else {
    RILL_ASSIGN_OR_RETURN(job, Draw(items));
  }
  *is_mine = job->stage == Job::Stage::kDrawn;
  if (*is_mine) job->stage = Job::Stage::kRunning;
  if (items != batch_size) return job;
  while (static_cast<int64_t>(ahead.size()) < prefetch) {
    absl::StatusOr<std::unique_ptr<Job>> next = Draw(items);
    // Its turn comes with a later call, which says so if it is still so.
    if (!next.ok()) break;
    ahead.push_back(*std::move(next));
  }
  return job;
}

int64_t ReplayBuffer::State::NumToMake() const {
  const int64_t drawn = std::count_if(
      ahead.begin(), ahead.end(),
      [](const auto& job) { return job->stage == Job::Stage::kDrawn; });
  // Where draws fail there are fewer ahead than `prefetch`.
  const int64_t begun = static_cast<int64_t>(ahead.size()) - drawn;
  return 2 * begun <= prefetch ? drawn : 0;
}

// Gathers, transforms in the order of numbers, places. Whatever fails, the turn
// goes on.
void ReplayBuffer::State::Run(Job* job) {
  if (copy_stream.has_value()) {
    // The copy of the batch before belongs to that one, with its errors; a
    // stream that failed works again once it was waited for.
    if (!job->AwaitCopy().ok()) {
      absl::MutexLock lock(&copy_mutex);
      copy_stream->Synchronize().IgnoreError();
    }
    job->status = job->reader.Read(*storage, job->plan, &job->staging);
    job->batch = job->staging;
  } else {
    job->status = job->reader.Read(*storage, job->plan, &job->batch);
  }
  job->is_cleared = absl::IsOutOfRange(job->status);
  gate.Release(&job->plan);
  if (!job->status.ok()) {
    transforms->Skip(job->number);
    return;
  }
  job->status = transforms->Forward(job->number, &job->batch,
                                    [this, job] { return Place(job); });
}

// Makes all that is drawn, then sleeps until the bell rings.
void ReplayBuffer::State::Work() {
  absl::MutexLock lock(&queue_mutex);
  while (!is_stopping) {
    const auto next = std::find_if(
        ahead.begin(), ahead.end(),
        [](const auto& each) { return each->stage == Job::Stage::kDrawn; });
    Job* const job = next == ahead.end() ? nullptr : next->get();
    if (job != nullptr) job->stage = Job::Stage::kRunning;
    queue_mutex.Unlock();
    if (job != nullptr) {
      Run(job);
    } else {
      bell.Await();
    }
    queue_mutex.Lock();
    if (job != nullptr) job->stage = Job::Stage::kDone;
  }
}

void ReplayBuffer::State::AwaitQueue() {
  bell.Ring();
  const auto is_made = [this] {
    queue_mutex.AssertReaderHeld();
    for (const auto& job : ahead) {
      if (job->stage != Job::Stage::kDone) return false;
    }
    return true;
  };
  queue_mutex.Await(absl::Condition(&is_made));
}

// The last step: whatever the transforms made lies where it was asked for.
absl::Status ReplayBuffer::State::Place(Job* job) const {
  TensorDict* const out = &job->batch;
  if (copy_stream.has_value()) {
    absl::MutexLock lock(&copy_mutex);
    RILL_ASSIGN_OR_RETURN(*out, out->ToAsync(*copy_stream, &job->in_flight));
    absl::StatusOr<Event> event = Event::Record(*copy_stream);
    if (!event.ok()) {
      // Nobody could tell when the memory is free.
      copy_stream->Synchronize().IgnoreError();
      return event.status();
    }
    job->copied = std::make_shared<const Event>(*std::move(event));
    return absl::OkStatus();
  }
  if (device.has_value()) {
    RILL_ASSIGN_OR_RETURN(*out, out->To(*device));
    return absl::OkStatus();
  }
  if (!pin_memory) return absl::OkStatus();
  if (out->is_pinned()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(*out, out->Pin(pin_for));
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::SampleOnce(
    int64_t items, TensorDict* out, std::shared_ptr<const Event>* copied,
    bool* is_cleared) {
  bool is_mine = false;
  gate.BeginDraw();
  queue_mutex.Lock();
  absl::StatusOr<std::unique_ptr<Job>> taken = TakeNext(items, &is_mine);
  const int64_t to_make = NumToMake();
  queue_mutex.Unlock();
  gate.EndDraw();
  if (to_make > 0) bell.Ring(to_make);
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Job> job, std::move(taken));
  if (is_mine) {
    // The caller's own memory.
    if (prefetch == 0) std::swap(job->batch, *out);
    Run(job.get());
  }
  absl::MutexLock lock(&queue_mutex);
  if (!is_mine && job->stage != Job::Stage::kDone) {
    ++batches_awaited;
    const absl::Time begin = clock.Now();
    const auto is_done = [this, &job] {
      queue_mutex.AssertReaderHeld();
      return job->stage == Job::Stage::kDone;
    };
    queue_mutex.Await(absl::Condition(&is_done));
    time_awaited += clock.Now() - begin;
  }
  // The memory of a job is not the caller's.
  if (copy_stream.has_value() && !job->status.ok()) job->batch = TensorDict();
  // What the caller had serves a batch to come.
  std::swap(job->batch, *out);
  *copied = job->copied;
  if (job->status.ok()) {
    ++batches;
    items_sampled += job->items;
  }
  *is_cleared = job->is_cleared;
  const absl::Status status = job->status;
  job->stage = Job::Stage::kDone;
  spare.push_back(std::move(job));
  return status;
}

absl::Status ReplayBuffer::State::SampleInto(
    int64_t items, TensorDict* out, std::shared_ptr<const Event>* copied) {
  RILL_ASSIGN_OR_RETURN(auto permit, writes->AwaitSample(items));
  absl::ReaderMutexLock pause(&pause_mutex);
  if (!transforms->is_checked()) {
    RILL_RETURN_IF_ERROR(
        transforms->CheckRows(storage->spec(), /*is_stored=*/true));
  }
  // Another buffer on this storage may clear it between the plan and the read;
  // the next batch is then one of what is there.
  const int64_t attempts = prefetch + 4;
  absl::Status status;
  for (int64_t attempt = 0; attempt < attempts; ++attempt) {
    bool is_cleared = false;
    status = SampleOnce(items, out, copied, &is_cleared);
    if (!is_cleared) break;
  }
  if (status.ok() && permit.has_value()) permit->Commit();
  return status;
}

absl::Status ReplayBuffer::State::SampleAndWait(int64_t items,
                                                TensorDict* out) {
  std::shared_ptr<const Event> copied;
  RILL_RETURN_IF_ERROR(SampleInto(items, out, &copied));
  if (items != batch_size && batch_size > 0) {
    absl::call_once(batch_size_warning, [&] {
      ABSL_LOG(WARNING) << "ReplayBuffer::Sample: batch size: got " << items
                        << " where Options::batch_size is " << batch_size
                        << "; the call's is taken (said once a buffer)";
    });
  }
  return copied == nullptr ? absl::OkStatus() : copied->Synchronize();
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
  return SampleInto(state_->batch_size, out);
}

absl::Status ReplayBuffer::SampleInto(int64_t batch_size, TensorDict* out) {
  if (out == nullptr) {
    return absl::InvalidArgumentError(
        "ReplayBuffer::SampleInto: out: got null, want a TensorDict");
  }
  return state_->SampleAndWait(batch_size, out);
}

absl::StatusOr<ReplayBuffer::PendingBatch> ReplayBuffer::SamplePending() {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  PendingBatch pending;
  RILL_RETURN_IF_ERROR(
      state_->SampleInto(state_->batch_size, &pending.batch, &pending.copied));
  return pending;
}

absl::Status ReplayBuffer::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  RILL_ASSIGN_OR_RETURN(
      const std::vector<Draw> draws,
      replay_internal::DrawsOf("ReplayBuffer::UpdatePriorities", batch));
  std::vector<float> spread;
  if (priorities.size() == 1) {
    spread.assign(draws.size(), priorities[0]);
    priorities = spread;
  }
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  return state_->sampler->UpdatePriorities(draws, priorities);
}

absl::Status ReplayBuffer::UpdatePriorities(
    absl::Span<const Draw> rows, absl::Span<const float> priorities) {
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  return state_->sampler->UpdatePriorities(rows, priorities);
}

absl::StatusOr<int64_t> ReplayBuffer::BatchesLeft() const {
  State& state = *state_;
  RILL_RETURN_IF_ERROR(state.CheckBatchSize());
  absl::ReaderMutexLock pause(&state.pause_mutex);
  absl::MutexLock lock(&state.queue_mutex);
  RILL_ASSIGN_OR_RETURN(
      const Sampler::EpochRest rest,
      state.sampler->RestOfEpoch({.batch_size = state.batch_size,
                                  .seed = state.seed,
                                  .batch_number = state.batch_number}));
  if (state.ahead.empty()) return rest.plans;
  const uint64_t epoch = state.ahead.front()->epoch;
  int64_t left = 0;
  for (const auto& job : state.ahead) {
    if (job->epoch != epoch) return left;
    ++left;
  }
  return rest.epoch == epoch ? left + rest.plans : left;
}

absl::StatusOr<TensorDict> ReplayBuffer::ReadAll(LiveRowsShape shape) {
  absl::MutexLock pause(&state_->pause_mutex);
  return ReadLiveRows(*state_->storage, shape);
}

}  // namespace rill
