// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_TEAM_H_
#define RILL_COLLECTORS_WORKERS_WORKER_TEAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/file_error.h"
#include "rill/base/process/child_process.h"
#include "rill/collectors/repeats/team_log.h"
#include "rill/collectors/workers/held_batch.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker_board.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/collectors/workers/worker_loop.h"
#include "rill/collectors/workers/worker_producers.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/collectors/workers/worker_statistics.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// The workers of one collector: starts them, asks them for batches, hands those
// on in the order in which each made them, and replaces processes that died.
//
// A worker has at most kDepth batches that were asked for and not delivered, so
// it never waits for space, and always answers after the batch at hand.
//
// Thread-safety: thread-compatible.
class WorkerTeam {
 public:
  static constexpr int64_t kDepth = 2;

  // Starts all workers and waits until they are ready. Errors begin with
  // `caller`, and name the option or the worker.
  static absl::StatusOr<std::unique_ptr<WorkerTeam>> Create(
      std::string caller, MultiCollectorOptions options);
  // Workers end after the batch at hand; processes that do not within two
  // seconds are killed.
  ~WorkerTeam();

  const MultiCollectorOptions& options() const { return options_; }
  const TensorDictSpec& spec() const { return spec_; }
  int64_t size() const { return static_cast<int64_t>(workers_.size()); }
  // Each worker has as many.
  int64_t lanes() const { return lanes_; }
  // Rows of a worker's whole batch.
  int64_t frames_per_batch(int64_t worker) const;
  // The sum over all workers.
  const Source::Times& times() const { return times_; }
  int64_t restarts() const { return restarts_; }
  const WorkerDeaths& deaths() const { return deaths_; }

  // A collector's place in its run.
  struct Place {
    int64_t frames = 0;
    int64_t next_worker = 0;
  };
  // One CheckGoesOn is CANCELLED: the next one to begin. Thread-safe.
  void Stop() { is_stopped_.store(true, std::memory_order_relaxed); }
  // OUT_OF_RANGE where total_frames were handed out, but for a call that goes
  // on with a round.
  absl::Status CheckGoesOn(int64_t frames, bool is_in_round = false);

  // Batches that are asked for from here on are of a new round.
  void BeginRound() { round_.fetch_add(1, std::memory_order_relaxed); }
  // With preemptive_threshold: workers end the batches that they make, but for
  // those of a later round, after the step at hand. Thread-safe.
  void Interrupt();
  // Whether the worker has told of a batch that was not delivered.
  bool HasMade(int64_t worker) const {
    return workers_[worker].HeldBatches() + workers_[worker].arrived > 0;
  }

  // Until `batches` (<= kDepth) are asked for and not delivered. The run has
  // handed out `frames`.
  absl::Status Ask(int64_t worker, int64_t batches, int64_t frames);
  // Writes the worker's next batch, or a cut that comes first, to `sink`;
  // whether it was a batch. An error of the sink leaves both where they are.
  // Replaces a worker that died when all that it sent was delivered:
  // UNAVAILABLE says how it ended where max_restarts are used up.
  absl::StatusOr<bool> Deliver(int64_t worker, Sink& sink);
  // The next batch, or without one the next cut, of the worker to be delivered.
  void PutBack(int64_t worker, std::optional<TensorDict> batch,
               const WriteInfo& info);
  // Until there is news of a worker: a batch, an end; not after `until`. The
  // error of a worker comes back, and takes back what was asked of it; so does
  // DEADLINE_EXCEEDED of a thread that takes longer than batch_timeout.
  // RESOURCE_EXHAUSTED, and `*has_failed`, where the system cannot wait.
  absl::Status Wait(absl::Time until = absl::InfiniteFuture(),
                    bool* has_failed = nullptr);

  // Takes back what was asked of the workers, after the batches at hand.
  // FAILED_PRECONDITION with a recorder, as are the other calls that pause.
  absl::Status Pause();
  // Pauses too. These three replace workers that have ended: UNAVAILABLE where
  // max_restarts are used up.
  absl::StatusOr<TensorDict> SaveState(const Place& place);
  // FAILED_PRECONDITION, unchanged, where it does not fit.
  absl::StatusOr<Place> LoadState(const TensorDict& state);

  // The statistics of the rows that were delivered.
  absl::StatusOr<TensorDict> TransformStates() const {
    return statistics_.Merged();
  }
  // Pauses too. All workers begin their next batches with these, and a reset.
  absl::Status LoadTransformStates(const TensorDict& states);

 private:
  struct Worker {
    std::optional<WorkerSocket> socket;  // None: it has ended.
    std::thread thread;
    std::shared_ptr<WorkerErrors> errors;  // Of the thread.
    std::unique_ptr<ChildProcess> process;
    bool is_ready = false;
    std::string end;        // How it ended.
    std::string no_memory;  // Who has found none, where it says so.
    int64_t restarts = 0;
    int64_t asked = 0;       // And not delivered.
    int64_t arrived = 0;     // Of those, told by kBatch; may be behind.
    int64_t round = 0;       // Of what was asked last.
    int64_t run_frames = 0;  // Handed out by then.
    // That it has sent in all, and before it was started anew.
    int64_t frames = 0;
    int64_t earlier_frames = 0;
    absl::Time deadline = absl::InfiniteFuture();
    std::deque<HeldBatch> held;  // Come before what is in the channel.

    int64_t HeldBatches() const;
    WorkerTimes times = {};
    std::optional<WorkerSocket::Message> answer;  // To AskAll.
    WorkerDeath death = {};                       // Where it has ended.
    bool is_counted = false;                      // The death.
  };

  WorkerTeam(std::string caller, MultiCollectorOptions options)
      : caller_(std::move(caller)), options_(std::move(options)) {}

  absl::Status StartAll();
  absl::Status Start(int64_t index);
  absl::Status StartRepeated(const WorkerStart& start);
  // Ends what is left of it, for `why` or by itself. None: nobody wants it any
  // more, and it is no death.
  void End(int64_t index, std::optional<DeathCause> cause,
           absl::string_view why);
  // Ends a process that is past a deadline; of a thread the error.
  absl::Status CheckDeadlines(int64_t index);
  absl::Status Replace(int64_t index);
  absl::Status Attach(int64_t index);
  absl::Status SendAsked(int64_t index, int64_t batches);
  absl::Status ReadAll(int64_t index);
  absl::Status Read(int64_t index, WorkerSocket::Message message);
  absl::Status ReadReady(int64_t index, absl::string_view bytes);
  absl::Status Error(int64_t index, const absl::Status& why) const;
  // Sends to all, and waits for all answers. One worker's error, or its end, is
  // that of all; those whose answers cannot be waited for are ended.
  absl::Status AskAll(MessageKind kind, const std::vector<std::string>& bytes);
  // The same where some may have ended, which are replaced, and with what a
  // worker has sent taken into `held`, behind what is there.
  absl::Status AskLiving(MessageKind kind);
  absl::Status Hold(int64_t index);
  absl::StatusOr<std::vector<std::string>> WorkerStates();
  // Has all workers load, those of other producers anew.
  absl::Status LoadWorkers(WorkerProducers producers,
                           const std::vector<int64_t>& restarts,
                           const std::vector<std::string>& states);
  const std::string caller_;
  const MultiCollectorOptions options_;
  std::unique_ptr<base_internal::FileDescriptor> life_[2];
  std::vector<Worker> workers_;
  std::unique_ptr<WorkerBoard> board_;
  TeamLog log_;
  WorkerStatistics statistics_;
  WorkerProducers producers_;
  std::atomic<int64_t> round_ = 1;
  std::unique_ptr<RecordChannel> channel_;
  TensorDictSpec spec_;
  std::string spec_text_;
  std::string fresh_bytes_;  // Of the statistics, as worker 0 has told.
  int64_t lanes_ = 0;
  int64_t frames_per_round_ = 0;  // A batch of each worker.
  Source::Times times_;
  int64_t restarts_ = 0;
  WorkerDeaths deaths_;
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_TEAM_H_
