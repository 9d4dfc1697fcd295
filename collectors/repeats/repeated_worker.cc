// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/repeats/repeated_worker.h"

#include <utility>

#include "absl/memory/memory.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {

absl::StatusOr<std::unique_ptr<RepeatedWorker>> RepeatedWorker::Create(
    const WorkerFunction& make, const Options& options) {
  auto worker = absl::WrapUnique(new RepeatedWorker);
  worker->log_ = options.log;
  if (options.weights != nullptr) {
    worker->weights_part_ = options.weights->part();
    RILL_ASSIGN_OR_RETURN(worker->reader_, options.weights->OpenReader());
  }
  const auto create = [&] {
    return WorkerCollector::Create(
        make,
        {.start = options.start,
         .argument = options.argument,
         .statistics = options.statistics,
         .weights = worker->reader_.get(),
         .is_interrupted = [self = worker.get()] { return self->EndStep(); }});
  };
  RILL_ASSIGN_OR_RETURN(worker->parts_,
                        CatchExceptions(create, "WorkerFunction"));
  return worker;
}

void RepeatedWorker::ShowWeights() {
  if (reader_ == nullptr || run_ >= arrival_.versions.size()) return;
  const int64_t version = arrival_.versions[run_].version;
  auto weights = log_->Published(weights_part_, version);
  // Random actions have a version that nobody published.
  if (!weights.ok()) return;
  reader_->Show(version, **weights);
  shown_ = *std::move(weights);
}

bool RepeatedWorker::EndStep() {
  ++step_;
  if (step_ == arrival_.steps) return true;
  if (step_ < run_end_) return false;
  if (++run_ < arrival_.versions.size()) {
    run_end_ += arrival_.versions[run_].steps;
  }
  ShowWeights();
  return false;
}

absl::Status RepeatedWorker::Begin(const Arrival& arrival,
                                   const SyncCollector::RunFrames& run) {
  arrival_ = arrival;
  step_ = 0;
  run_ = 0;
  run_end_ = arrival_.versions.empty() ? 0 : arrival_.versions[0].steps;
  ShowWeights();
  parts_.collector->SetRunFrames(run);
  if (parts_.before_batch == nullptr) return absl::OkStatus();
  return CatchExceptions([this] { return parts_.before_batch(); },
                         "WorkerParts::before_batch");
}

absl::Status RepeatedWorker::Collect(const Arrival& arrival,
                                     const SyncCollector::RunFrames& run,
                                     Sink& sink) {
  // The worker has made a batch that comes again once.
  if (!std::exchange(is_refused_, false)) {
    RILL_RETURN_IF_ERROR(Begin(arrival, run));
  }
  FunctionSink writes(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        is_refused_ = true;  // Also where it throws.
        RILL_RETURN_IF_ERROR(sink.Write(batch, info));
        is_refused_ = false;
        return absl::OkStatus();
      });
  return CatchExceptions([&] { return parts_.collector->CollectInto(writes); },
                         "SyncCollector");
}

}  // namespace rill::workers_internal
