// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_REPEATS_REPEATED_WORKER_H_
#define RILL_COLLECTORS_REPEATS_REPEATED_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/collectors/repeats/worker_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/sink.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// A worker of a run that is repeated: its batches are made in the caller's
// thread, when the log says that they came.
// Thread-safety: thread-compatible.
class RepeatedWorker {
 public:
  struct Options {
    WorkerStart start = {};
    absl::string_view argument = "";
    TensorDict statistics = {};            // As of WorkerCollector.
    const WeightStore* weights = nullptr;  // Null: none.
    DecisionLog* log = nullptr;            // Has published the weights.
  };

  // Errors of the parts, and INTERNAL for exceptions.
  static absl::StatusOr<std::unique_ptr<RepeatedWorker>> Create(
      const WorkerFunction& make, const Options& options);

  const WorkerCollector& parts() const { return parts_; }

  // Makes the batch that has arrived so, each step with its version of the
  // weights, and writes it to `sink`. A batch that the sink has refused is
  // offered again. `sink` gets no cuts: those are arrivals of their own. The
  // error is the sink's, or that of the parts, which the run did not have.
  absl::Status Collect(const Arrival& arrival,
                       const SyncCollector::RunFrames& run, Sink& sink);
  // Whether the last error of Collect was the sink's.
  bool is_refused() const { return is_refused_; }

 private:
  RepeatedWorker() = default;
  // All that comes before the first step of a batch.
  absl::Status Begin(const Arrival& arrival,
                     const SyncCollector::RunFrames& run);
  // The reader shows what step `step_` was made with, where the log knows it.
  void ShowWeights();
  // A step has ended; whether it was the last one.
  bool EndStep();

  DecisionLog* log_ = nullptr;
  int64_t weights_part_ = -1;
  // Each outlives the next.
  std::shared_ptr<const TensorDict> shown_;
  std::unique_ptr<WeightStore::Reader> reader_;
  WorkerCollector parts_;
  bool is_refused_ = false;  // The batch at hand, which is made.
  Arrival arrival_;          // The batch at hand.
  int64_t step_ = 0;         // Of it.
  size_t run_ = 0;           // Of arrival_.versions, that step_ is in.
  int64_t run_end_ = 0;      // Its first step beyond.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_REPEATS_REPEATED_WORKER_H_
