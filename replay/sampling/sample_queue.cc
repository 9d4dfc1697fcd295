// SPDX-License-Identifier: Apache-2.0
// With `prefetch` N batch k + N is drawn inside the call that hands out batch
// k. Draws so depend on the order of calls alone, and on nothing that runs in
// the background. Workers gather and transform what is drawn; a caller whose
// batch nobody has begun makes it itself.
//
// Waking a thread costs the caller about 10 us, so workers are woken when at
// most half of the N batches are made. A thread that waits for a batch that may
// not have been begun wakes them first: a write that would overwrite its rows,
// Save, Clear, a transform that is added.
#include "rill/replay/sampling/sample_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/replay/sampling/replaced_leaves.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// A batch and the memory that it is made in, which serves others after it.
struct SampleQueue::Job {
  enum class Progress { kDrawn, kRunning, kDone };

  explicit Job(const SampleReader::Options& options) : reader(options) {}

  Progress progress = Progress::kDrawn;  // Guarded by the queue.
  // All else belongs to the thread that makes the batch, then to its taker.
  DrawnBatch drawn;
  SampleReader reader;
  PlacedBatch placed;  // Of a drawn batch: memory that may be used again.
  ReplacedLeaves replaced;
  Outcome outcome = Outcome::kMade;
  absl::Status status;
  // Last, as it waits for work that may still use the memory above.
  Placement::Staging staging;
};

SampleQueue::SampleQueue(const Options& options) : options_(options) {}

SampleQueue::~SampleQueue() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  options_.wake->Notify();
  for (std::thread& worker : workers_) worker.join();
  absl::MutexLock lock(&mutex_);
  // A writer to this storage may wait for a gather that nobody will do.
  for (const auto& job : ahead_) options_.drawn_rows->Release(&job->drawn.plan);
}

void SampleQueue::StartWorkers(int threads) {
  if (options_.prefetch == 0) return;
  for (int i = 0; i < threads; ++i) {
    workers_.emplace_back([this] { Work(); });
  }
}

absl::StatusOr<std::unique_ptr<SampleQueue::Job>> SampleQueue::Draw(
    int64_t items) {
  std::unique_ptr<Job> job;
  if (spare_.empty()) {
    job = std::make_unique<Job>(options_.reader);
  } else {
    job = std::move(spare_.back());
    spare_.pop_back();
  }
  if (const absl::Status status = DrawInto(items, job.get()); !status.ok()) {
    spare_.push_back(std::move(job));
    return status;
  }
  return job;
}

absl::Status SampleQueue::DrawInto(int64_t items, Job* job) {
  DrawnBatch& drawn = job->drawn;
  // Before the plan: a clear from here on shows, whether the plan has seen it
  // or not.
  drawn.clears = options_.writes->clears();
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] {
        return options_.sampler->Plan({.batch_size = items,
                                       .seed = options_.seed,
                                       .batch_number = batch_number_},
                                      &drawn.plan);
      },
      options_.sampler->name(), "::Plan"));
  // In the ticket of the draw, so no write has retired a row since the plan.
  options_.drawn_rows->Hold(&drawn.plan);
  drawn.epoch = drawn.plan.epoch;
  if (options_.has_digests) {
    drawn.digest = DrawDigest(drawn.plan.draws, drawn.plan.rows);
  }
  // A draw that failed has returned above and uses up no number.
  drawn.number = batch_number_++;
  drawn.items = items;
  job->progress = Job::Progress::kDrawn;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SampleQueue::Job>> SampleQueue::TakeNext(
    int64_t items, bool* is_mine) {
  std::unique_ptr<Job> job;
  if (items == options_.batch_size && !ahead_.empty()) {
    job = std::move(ahead_.front());
    ahead_.erase(ahead_.begin());
  } else {
    RILL_ASSIGN_OR_RETURN(job, Draw(items));
  }
  *is_mine = job->progress == Job::Progress::kDrawn;
  if (*is_mine) job->progress = Job::Progress::kRunning;
  if (items != options_.batch_size) return job;
  while (static_cast<int64_t>(ahead_.size()) < options_.prefetch) {
    absl::StatusOr<std::unique_ptr<Job>> next = Draw(items);
    // It comes up with a later call, which says so if it is still so.
    if (!next.ok()) break;
    ahead_.push_back(*std::move(next));
  }
  return job;
}

int64_t SampleQueue::NumToMake() const {
  const int64_t drawn = std::count_if(
      ahead_.begin(), ahead_.end(),
      [](const auto& job) { return job->progress == Job::Progress::kDrawn; });
  // Where draws fail there are fewer ahead than `prefetch`.
  const int64_t begun = static_cast<int64_t>(ahead_.size()) - drawn;
  return 2 * begun <= options_.prefetch ? drawn : 0;
}

// On a device everything is enqueued, and the next batch that is made in the
// same memory comes behind it in the stream.
void SampleQueue::Make(Job* job) const {
  MakeRows(job);
  job->reader.EndRead(job->staging.end());
}

// Whatever fails, the transforms are notified of the batch: others wait for it.
void SampleQueue::MakeRows(Job* job) const {
  GatheredBatch gathered{.rows = std::move(job->placed.rows)};
  job->placed = {};
  const bool on_device = !options_.storage->device().is_cpu();
  // Behind `gathered`, so that its memory outlives the work of a failed batch.
  const Placement::Making making(*options_.placement, &job->status);
  const std::shared_ptr<const GatherPlan> chain = options_.transforms->chain();
  job->reader.SetChain(chain);
  job->replaced.PutBack(&gathered.rows,
                        on_device ? job->reader.kept() : nullptr);
  job->status = options_.placement->Gather(
      &job->staging, &gathered, [&](TensorDict* rows) {
        return CatchExceptions(
            [&] {
              return job->reader.Read(*options_.storage, job->drawn.plan, rows);
            },
            "the storage's Read or the unit's arithmetic");
      });
  // A count says whether the rows are gone, not the status code of the read.
  const bool is_cleared = options_.writes->clears() != job->drawn.clears;
  // Released as soon as the rows are copied: transforms keep no writer waiting.
  options_.drawn_rows->Release(&job->drawn.plan);
  if (!job->status.ok()) {
    job->outcome = is_cleared ? Outcome::kCleared : Outcome::kFailed;
    options_.transforms->Skip(job->drawn.number);
    return;
  }
  const bool has_transforms =
      chain == nullptr && !options_.transforms->is_empty();
  if (has_transforms) job->replaced.BeginTransforms(gathered.rows);
  const auto place = [&]() -> absl::Status {
    if (has_transforms) job->replaced.EndTransforms(gathered.rows);
    RILL_RETURN_IF_ERROR(
        CheckFiniteIfAsked("ReplayBuffer::Sample", gathered.rows, {"row"}))
        << "in batch " << job->drawn.number;
    RILL_ASSIGN_OR_RETURN(job->placed, options_.placement->Place(
                                           std::move(gathered), &job->staging));
    return absl::OkStatus();
  };
  job->status = chain != nullptr
                    ? place()
                    : options_.transforms->Forward(job->drawn.number,
                                                   &gathered.rows, place);
  job->outcome = job->status.ok() ? Outcome::kMade : Outcome::kFailed;
}

// Makes all that is drawn, then sleeps until it is woken.
void SampleQueue::Work() {
  absl::MutexLock lock(&mutex_);
  while (!is_stopping_) {
    const auto next =
        std::find_if(ahead_.begin(), ahead_.end(), [](const auto& each) {
          return each->progress == Job::Progress::kDrawn;
        });
    Job* const job = next == ahead_.end() ? nullptr : next->get();
    if (job != nullptr) job->progress = Job::Progress::kRunning;
    // A batch is made without the lock; kRunning keeps others from it.
    mutex_.Unlock();
    if (job != nullptr) {
      Make(job);
    } else {
      options_.wake->Await();
    }
    mutex_.Lock();
    if (job != nullptr) job->progress = Job::Progress::kDone;
  }
}

absl::Status SampleQueue::TakeOnce(int64_t items, PlacedBatch* out,
                                   Outcome* outcome) {
  *outcome = Outcome::kFailed;
  bool is_mine = false;
  // The ticket before the lock: a write may have the ticket and wait for a
  // gather, and workers need the lock to begin one.
  options_.drawn_rows->BeginDraw();
  mutex_.Lock();
  absl::StatusOr<std::unique_ptr<Job>> taken = TakeNext(items, &is_mine);
  const int64_t to_make = NumToMake();
  mutex_.Unlock();
  options_.drawn_rows->EndDraw();
  // Behind the ticket, since waking takes longer than a draw.
  if (to_make > 0) options_.wake->Notify(to_make);
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Job> job, std::move(taken));
  if (is_mine) {
    // The caller's own memory.
    if (options_.prefetch == 0) std::swap(job->placed.rows, out->rows);
    Make(job.get());
  }
  absl::MutexLock lock(&mutex_);
  if (!is_mine && job->progress != Job::Progress::kDone) {
    ++counts_.awaited;
    const absl::Time begin = options_.clock->Now();
    const auto is_done = [this, &job] {
      mutex_.AssertReaderHeld();
      return job->progress == Job::Progress::kDone;
    };
    mutex_.Await(absl::Condition(&is_done));
    counts_.time_awaited += options_.clock->Now() - begin;
  }
  // The caller's memory serves a batch to come.
  std::swap(job->placed.rows, out->rows);
  out->copied = std::move(job->placed.copied);
  job->placed.copied = nullptr;
  out->digest = job->drawn.digest;
  *outcome = job->outcome;
  const absl::Status status = job->status;
  if (status.ok()) {
    ++counts_.batches;
    counts_.items += job->drawn.items;
  }
  job->progress = Job::Progress::kDone;
  spare_.push_back(std::move(job));
  return status;
}

absl::Status SampleQueue::Take(int64_t items, PlacedBatch* out) {
  // All batches ahead may be of cleared rows: one attempt for each of them, and
  // some more. There is an end, since another buffer on this storage may clear
  // it again and again.
  const int64_t attempts = options_.prefetch + 4;
  absl::Status status;
  for (int64_t attempt = 0; attempt < attempts; ++attempt) {
    Outcome outcome = Outcome::kFailed;
    status = TakeOnce(items, out, &outcome);
    if (outcome != Outcome::kCleared) break;
  }
  return status;
}

SampleQueue::Captured::Captured(std::unique_ptr<Job> job)
    : job_(std::move(job)) {}
SampleQueue::Captured::~Captured() = default;

uint32_t SampleQueue::Captured::digest() const { return job_->drawn.digest; }

// The work of a graph is for as many draws as the first batch had.
absl::Status SampleQueue::CheckDraws(Captured* captured) {
  const DrawnBatch& drawn = captured->job_->drawn;
  const int64_t draws = static_cast<int64_t>(drawn.plan.draws.size());
  if (captured->draws_ == 0) captured->draws_ = draws;
  if (draws == captured->draws_) return absl::OkStatus();
  options_.drawn_rows->Release(&drawn.plan);
  options_.transforms->Skip(drawn.number);
  return FailedPrecondition(
      "ReplayBuffer::CapturedSample::Replay: sampler: got ", draws,
      " draws in batch ", drawn.number, ", want ", captured->draws_,
      " as captured; this batch is lost. Take a sampler whose batches all have "
      "as many, or Sample");
}

// The tensors go in and stay, also after an error.
absl::Status SampleQueue::MakeAgain(Captured* captured) {
  Job& job = *captured->job_;
  constexpr int kAttempts = 4;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // As in TakeOnce.
    options_.drawn_rows->BeginDraw();
    mutex_.Lock();
    const absl::Status drawn = DrawInto(options_.batch_size, &job);
    mutex_.Unlock();
    options_.drawn_rows->EndDraw();
    RILL_RETURN_IF_ERROR(drawn);
    RILL_RETURN_IF_ERROR(CheckDraws(captured));
    job.placed.rows = captured->rows_;
    Make(&job);
    if (job.outcome != Outcome::kCleared) break;
  }
  RILL_RETURN_IF_ERROR(job.status);
  absl::MutexLock lock(&mutex_);
  ++counts_.batches;
  counts_.items += job.drawn.items;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SampleQueue::Captured>> SampleQueue::Capture() {
  std::unique_ptr<Captured> captured(
      new Captured(std::make_unique<Job>(options_.reader)));
  captured->chain_ = options_.transforms->chain();
  const auto& layout = options_.sampler->traits().layout;
  captured->job_->reader.FixLists(layout.RowsOfLists(options_.batch_size),
                                  layout.may_pad());
  RILL_RETURN_IF_ERROR(MakeAgain(captured.get()));
  Job& job = *captured->job_;
  RILL_RETURN_IF_ERROR(job.placed.copied->Synchronize());
  // All memory is there now.
  job.reader.MakeGraph();
  captured->rows_ = std::move(job.placed.rows);
  return captured;
}

absl::StatusOr<std::shared_ptr<const Event>> SampleQueue::Replay(
    const Stream& stream, Captured* captured) {
  if (options_.transforms->chain() != captured->chain_) {
    return FailedPrecondition(
        "ReplayBuffer::CapturedSample::Replay: transforms: got others than "
        "were captured, want the same; capture the sample again");
  }
  Job& job = *captured->job_;
  RILL_RETURN_IF_ERROR(options_.placement->WaitFor(stream));
  RILL_RETURN_IF_ERROR(MakeAgain(captured));
  std::shared_ptr<const Event> end = job.placed.copied;
  if (const absl::Status behind = stream.WaitFor(*end); !behind.ok()) {
    // Nobody would know when the batch is there.
    end->Synchronize().IgnoreError();
    return behind;
  }
  return end;
}

void SampleQueue::AwaitMade() {
  options_.wake->Notify();
  const auto is_made = [this] {
    mutex_.AssertReaderHeld();
    return std::all_of(ahead_.begin(), ahead_.end(), [](const auto& job) {
      return job->progress == Job::Progress::kDone;
    });
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&is_made));
}

void SampleQueue::Forget() {
  absl::MutexLock lock(&mutex_);
  for (auto& job : ahead_) spare_.push_back(std::move(job));
  ahead_.clear();
}

absl::StatusOr<int64_t> SampleQueue::BatchesLeft() const {
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(const Sampler::EpochRest rest,
                        CatchExceptions(
                            [&] {
                              return options_.sampler->RestOfEpoch(
                                  {.batch_size = options_.batch_size,
                                   .seed = options_.seed,
                                   .batch_number = batch_number_});
                            },
                            options_.sampler->name(), "::RestOfEpoch"));
  if (ahead_.empty()) return rest.plans;
  // The next batch is the first of those ahead; batches count up to the first
  // of another epoch.
  const uint64_t epoch = ahead_.front()->drawn.epoch;
  int64_t left = 0;
  for (const auto& job : ahead_) {
    if (job->drawn.epoch != epoch) return left;
    ++left;
  }
  return rest.epoch == epoch ? left + rest.plans : left;
}

SampleQueue::Counts SampleQueue::counts() const {
  absl::MutexLock lock(&mutex_);
  Counts counts = counts_;
  counts.ahead = static_cast<int64_t>(ahead_.size());
  for (const auto* jobs : {&ahead_, &spare_}) {
    for (const auto& job : *jobs) {
      if (job->progress == Job::Progress::kRunning) continue;
      job->placed.rows.ForEachLeaf(
          [&counts](absl::string_view, const Tensor& leaf) {
            if (leaf.device().is_cpu()) return;
            counts.device_bytes += leaf.size_bytes();
          });
    }
  }
  return counts;
}

// A batch that failed is made anew from its number where it can be; it cannot
// be here, so it is an error of the save.
absl::StatusOr<std::vector<SampleQueue::Made>> SampleQueue::SaveAhead() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Made> ahead;
  for (const auto& job : ahead_) {
    RILL_RETURN_IF_ERROR(job->status)
        << "ReplayBuffer::Save: batch " << job->drawn.number
        << ", made ahead; sample it first";
    Made made{.number = job->drawn.number, .items = job->drawn.items};
    if (options_.sampler->traits().has_epochs) made.epoch = job->drawn.epoch;
    const PlacedBatch& placed = job->placed;
    if (placed.copied != nullptr) {
      RILL_RETURN_IF_ERROR(placed.copied->Synchronize());
    }
    RILL_ASSIGN_OR_RETURN(made.rows, placed.rows.To(Device::Cpu()));
    ahead.push_back(std::move(made));
  }
  return ahead;
}

absl::Status SampleQueue::LoadAhead(std::vector<Made> ahead) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (Made& made : ahead) {
    auto job = std::make_unique<Job>(options_.reader);
    job->progress = Job::Progress::kDone;
    job->drawn.number = made.number;
    job->drawn.items = made.items;
    job->drawn.epoch = made.epoch.value_or(0);
    RILL_ASSIGN_OR_RETURN(
        job->placed, options_.placement->Place({.rows = std::move(made.rows)},
                                               &job->staging));
    jobs.push_back(std::move(job));
  }
  absl::MutexLock lock(&mutex_);
  ahead_ = std::move(jobs);
  return absl::OkStatus();
}

}  // namespace rill::replay_internal
