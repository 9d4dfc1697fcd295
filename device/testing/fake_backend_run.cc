// SPDX-License-Identifier: Apache-2.0
// The part of FakeBackend that orders and runs queued work and answers tests.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/testing/fake_backend.h"

namespace rill {

absl::Status FakeBackend::Record(int index, EventHandle event,
                                 StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  RILL_ASSIGN_OR_RETURN(Event* const point, FindEvent(index, event));
  RILL_RETURN_IF_ERROR(CheckRuns(*queue, "Record"));
  queue->PushRecord(*point);
  return absl::OkStatus();
}

absl::Status FakeBackend::Wait(int index, StreamHandle stream,
                               EventHandle event) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  RILL_ASSIGN_OR_RETURN(Event* const point, FindEvent(index, event));
  RILL_RETURN_IF_ERROR(CheckRuns(*queue, "Wait"));
  queue->PushWait(*point);
  return absl::OkStatus();
}

absl::Status FakeBackend::SynchronizeStream(int index, StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  const absl::Status entered = Enter(index);
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  RILL_RETURN_IF_ERROR(CheckRuns(*queue, "SynchronizeStream"));
  Note({.kind = Call::Kind::kSynchronizeStream, .stream = stream.value});
  queue->RunAll();
  DropFinishedQueues();
  RILL_RETURN_IF_ERROR(entered);
  return failures_[index];
}

absl::Status FakeBackend::SynchronizeEvent(int index, EventHandle event) {
  absl::MutexLock lock(&mutex_);
  const absl::Status entered = Enter(index);
  RILL_ASSIGN_OR_RETURN(Event* const found, FindEvent(index, event));
  Note({.kind = Call::Kind::kSynchronizeEvent});
  if (found->last == nullptr) return entered;
  Queue::RunUntil(*found->last);
  DropFinishedQueues();
  RILL_RETURN_IF_ERROR(entered);
  return found->last->status;
}

absl::StatusOr<bool> FakeBackend::IsComplete(int index, EventHandle event) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  RILL_ASSIGN_OR_RETURN(Event* const found, FindEvent(index, event));
  if (found->last == nullptr) return true;
  if (found->last->reached) {
    RILL_RETURN_IF_ERROR(found->last->status);
    return true;
  }
  if (options_.run_one_per_poll) Queue::RunTowards(*found->last);
  return false;
}

bool FakeBackend::RunOne(int index, StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<Queue*> queue = FindQueue(index, stream);
  if (!queue.ok() || !(*queue)->CanRun()) return false;
  (*queue)->RunOne();
  return true;
}

void FakeBackend::RunAll(uint64_t seed) {
  const Rng rng(seed);
  absl::MutexLock lock(&mutex_);
  for (uint32_t step = 0; RunAny(rng, step); ++step) {
  }
  DropFinishedQueues();
}

bool FakeBackend::RunAny(const Rng& rng, uint32_t draw) {
  std::vector<Queue*> ready;
  for (const std::shared_ptr<Queue>& queue : queues_) {
    if (queue->CanRun()) ready.push_back(queue.get());
  }
  if (ready.empty()) return false;
  ready[rng.UniformInt(/*batch=*/0, draw, ready.size())]->RunOne();
  return true;
}

void FakeBackend::RunSome() {
  if (!options_.run_some_seed.has_value()) return;
  const Rng rng(*options_.run_some_seed);
  const uint64_t draw = rng.UniformInt(/*batch=*/1, run_some_draws_++, 16 * 33);
  const uint64_t count = draw % 16 == 0 ? draw / 16 : 0;
  for (uint64_t i = 0; i < count && RunAny(rng, run_some_draws_); ++i) {
    ++run_some_draws_;
  }
}

void FakeBackend::Note(const Call& call) {
  if (calls_.has_value()) calls_->push_back(call);
}

void FakeBackend::StartCalls() {
  absl::MutexLock lock(&mutex_);
  calls_.emplace();
}

std::vector<FakeBackend::Call> FakeBackend::TakeCalls() {
  absl::MutexLock lock(&mutex_);
  std::vector<Call> calls = std::move(calls_).value_or(std::vector<Call>());
  calls_.reset();
  return calls;
}

void FakeBackend::DropFinishedQueues() {
  // The default streams at the front stay.
  size_t kept = options_.num_devices;
  for (size_t i = kept; i < queues_.size(); ++i) {
    const bool is_live = streams_.count(queues_[i].get()) != 0;
    if (is_live || queues_[i]->size() > 0) {
      std::swap(queues_[kept++], queues_[i]);
    }
  }
  queues_.resize(kept);
}

void FakeBackend::FailNext(Operation operation, int64_t nth,
                           absl::Status status) {
  absl::MutexLock lock(&mutex_);
  Tally& tally = tallies_[static_cast<size_t>(operation)];
  tally.faults.push_back({tally.reached + nth, std::move(status)});
}

void FakeBackend::FailCall(int64_t nth, absl::Status status, bool is_lost) {
  absl::MutexLock lock(&mutex_);
  calls_to_failure_ = nth;
  call_failure_ = std::move(status);
  is_lost_ = is_lost;
}

bool FakeBackend::Recover() {
  absl::MutexLock lock(&mutex_);
  bool has_failed = !call_failure_.ok() && calls_to_failure_ <= 0;
  call_failure_ = absl::OkStatus();
  std::fill(failures_.begin(), failures_.end(), absl::OkStatus());
  for (Tally& tally : tallies_) {
    for (const Fault& fault : tally.faults) {
      has_failed = has_failed || fault.at <= tally.reached;
    }
    tally.faults.clear();
  }
  return has_failed;
}

int64_t FakeBackend::Count(Operation operation) const {
  absl::MutexLock lock(&mutex_);
  return tallies_[static_cast<size_t>(operation)].asked;
}

int64_t FakeBackend::NumPending(int index, StreamHandle stream) const {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<Queue*> queue = FindQueue(index, stream);
  return queue.ok() ? (*queue)->size() : 0;
}

int64_t FakeBackend::NumAllocations(int index, MemoryKind kind) const {
  absl::MutexLock lock(&mutex_);
  return memory_.NumLive(index, kind);
}

int64_t FakeBackend::AllocatedBytes(int index, MemoryKind kind) const {
  absl::MutexLock lock(&mutex_);
  return memory_.LiveBytes(index, kind);
}

int64_t FakeBackend::NumStreamsAndEvents() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(streams_.size() + events_.size());
}

std::vector<std::string> FakeBackend::TakeMisuse() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(misuse_, {});
}

absl::StatusOr<std::vector<uint8_t>> FakeBackend::Peek(int index,
                                                       const void* data,
                                                       int64_t bytes) const {
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(const std::byte* const host,
                        memory_.Resolve(index, data, bytes));
  std::vector<uint8_t> copy(bytes);
  if (bytes > 0) std::memcpy(copy.data(), host, bytes);
  return copy;
}

}  // namespace rill
