// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_H_
#define RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/wake_signal.h"
#include "rill/device/stream.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/write_counter.h"
#include "rill/replay/sampling/placement.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/sampling/sample_reader.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/samplers/sampler.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/rows/gather_plan.h"

namespace rill::replay_internal {

// The batches that a replay buffer has drawn: each is drawn, gathered, sent
// through the transforms and placed (sample_batches.h). With `prefetch` N batch
// k + N is drawn inside the call that hands out batch k, and worker threads
// make what is drawn; without, the caller's thread does.
//
// A batch has an outcome, and costs no other: a draw that fails uses up no
// number; a batch whose rows somebody cleared between draw and gather is drawn
// anew.
//
// Thread-safety: Take, counts, BatchesLeft and batch_number are thread-safe;
//   the others go alone. A ticket of DrawnRows is taken before the lock, so that
//   nobody waits for the ticket with it held. A write may have the ticket and wait
//   for a gather, and workers need the lock to begin one. Under the lock only
//   the sampler is called.
// Cost: without prefetch a Take of a batch that fits allocates nothing where
//   sampler, transforms and placement do not. With it, about one Take in
//   prefetch / 2 wakes a worker, some 10 us.
class SampleQueue {
 public:
  // All pointers are required and outlive this.
  struct Options {
    const RowReader* storage = nullptr;
    Sampler* sampler = nullptr;
    const WriteCounter* writes = nullptr;
    DrawnRows* drawn_rows = nullptr;
    TransformStage* transforms = nullptr;
    const Placement* placement = nullptr;
    const Clock* clock = nullptr;
    // Wakes idle workers. A thread that waits for a batch that may not have
    // been begun notifies it: drawn rows and transforms are made with it too.
    WakeSignal* wake = nullptr;
    SampleReader::Options reader = {};
    int64_t batch_size = 0;  // Of batches that are drawn ahead.
    int64_t prefetch = 0;
    uint64_t seed = 0;
    bool has_digests = false;  // Of draws: PlacedBatch::digest.
  };

  explicit SampleQueue(const Options& options);
  // Ends the workers. Writers to the storage wait no more for batches that
  // nobody will gather.
  ~SampleQueue();
  SampleQueue(const SampleQueue&) = delete;
  SampleQueue& operator=(const SampleQueue&) = delete;

  // None where `prefetch` is 0.
  void StartWorkers(int threads);

  // The next batch of `items`, in the memory of out->rows where it fits; what
  // the caller had serves a batch to come. FAILED_PRECONDITION where rows are
  // too few; with an error the values in `out` are unspecified.
  absl::Status Take(int64_t items, PlacedBatch* out)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A batch that is made again and again in the same tensors.
  class Captured;
  // The next batch of Options::batch_size, which is there when this returns.
  // The work of those that Replay makes in its place is a graph, which the
  // first of them captures. For rows that SampleReader::MakeGraph takes,
  // without `prefetch`, and with a chain or no transforms. Errors as Take.
  absl::StatusOr<std::unique_ptr<Captured>> Capture()
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The next batch, behind the work that `stream` has now and before what it
  // gets later; the host goes on, and the event is the batch's end. After an
  // error the values of the batch are unspecified, and a later call goes on.
  // FAILED_PRECONDITION where the storage's rows or the transforms are not
  // those of the capture any more, and where there are fewer draws than it had.
  absl::StatusOr<std::shared_ptr<const Event>> Replay(const Stream& stream,
                                                      Captured* captured)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until all that was drawn ahead is made.
  void AwaitMade() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up the batches ahead, which are made.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

  // ReplayBuffer::BatchesLeft.
  absl::StatusOr<int64_t> BatchesLeft() const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counts {
    int64_t items = 0;  // Handed out, in `batches`.
    int64_t batches = 0;
    int64_t ahead = 0;  // Drawn and not handed out.
    // Batches that were not ready when they were asked for, and how long that
    // took.
    int64_t awaited = 0;
    absl::Duration time_awaited = absl::ZeroDuration();
    // Device memory of batches that are made and wait, or whose memory does.
    int64_t device_bytes = 0;
  };
  // Cost: O(leaves) for each batch that waits.
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Batches drawn so far, which is the number of the next one.
  uint64_t batch_number() const { return batch_number_; }
  uint64_t seed() const { return options_.seed; }
  int64_t batch_size() const { return options_.batch_size; }
  int64_t prefetch() const { return options_.prefetch; }

  // A batch that was made ahead, in host memory: for checkpoints.
  struct Made {
    uint64_t number = 0;
    int64_t items = 0;
    std::optional<uint64_t> epoch = std::nullopt;
    TensorDict rows = {};
  };
  // Those ahead, which are made, in order. The error of one that failed.
  absl::StatusOr<std::vector<Made>> SaveAhead() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Into a new queue: the number of the next draw, and batches before it.
  void SetBatchNumber(uint64_t number) { batch_number_ = number; }
  absl::Status LoadAhead(std::vector<Made> ahead) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Outcome { kMade, kCleared, kFailed };
  struct Job;

  absl::StatusOr<std::unique_ptr<Job>> Draw(int64_t items)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DrawInto(int64_t items, Job* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckDraws(Captured* captured);
  absl::Status MakeAgain(Captured* captured) ABSL_LOCKS_EXCLUDED(mutex_);
  // The batch that is next, and draws those ahead; with a ticket of DrawnRows.
  absl::StatusOr<std::unique_ptr<Job>> TakeNext(int64_t items, bool* is_mine)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Batches for which workers are to be woken: those that are drawn, where no
  // more than half of `prefetch` is made or being made.
  int64_t NumToMake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status TakeOnce(int64_t items, PlacedBatch* out, Outcome* outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Make(Job* job) const ABSL_LOCKS_EXCLUDED(mutex_);
  void MakeRows(Job* job) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<uint64_t> batch_number_ = 0;  // Written in Draw with the lock.
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Job>> ahead_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Job>> spare_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Counts counts_ ABSL_GUARDED_BY(mutex_);  // But `ahead` and `device_bytes`.
  std::vector<std::thread> workers_;
};

class SampleQueue::Captured {
 public:
  ~Captured();

  // The same tensors for all batches.
  const TensorDict& rows() const { return rows_; }
  // PlacedBatch::digest of the batch that was made last.
  uint32_t digest() const;

 private:
  friend class SampleQueue;
  explicit Captured(std::unique_ptr<Job> job);

  TensorDict rows_;
  int64_t draws_ = 0;                        // Of all batches.
  std::shared_ptr<const GatherPlan> chain_;  // Of all batches.
  std::unique_ptr<Job> job_;  // Last, as it waits for work that uses `rows_`.
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_H_
