// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_PRODUCERS_H_
#define RILL_COLLECTORS_WORKERS_WORKER_PRODUCERS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/flow/producers.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill::workers_internal {

// The numbers of producers of a collector's workers: one each, and one each
// time that a worker is started anew.
// Thread-safety: thread-compatible. Cost: that of ProducerNumbers.
class WorkerProducers {
 public:
  WorkerProducers() = default;
  // From MultiCollectorOptions::producer on; without that, numbers that no
  // other source of the process has, and RESOURCE_EXHAUSTED where there are
  // none.
  static absl::StatusOr<WorkerProducers> Create(
      const MultiCollectorOptions& options);
  // Those that a state goes on with: of the options where these choose, else
  // its own. FAILED_PRECONDITION where those of `restarts`, of each worker, are
  // not among them.
  static absl::StatusOr<WorkerProducers> Read(
      const StateReader& state, absl::Span<const int64_t> restarts,
      const MultiCollectorOptions& options);
  void Save(StateWriter* state) const;
  // Equal numbers, of the same source.
  WorkerProducers Clone() const;

  int64_t Of(int64_t worker, int64_t restarts) const {
    return numbers_.first() + worker + workers_ * restarts;
  }
  uint64_t source() const { return source_; }  // WriteInfo::source.
  // RESOURCE_EXHAUSTED where that number was not set aside.
  absl::Status Check(int64_t worker, int64_t restarts) const;
  friend bool operator==(const WorkerProducers& a, const WorkerProducers& b) {
    return a.numbers_.first() == b.numbers_.first();
  }

 private:
  WorkerProducers(ProducerNumbers numbers, int64_t workers, uint64_t source)
      : numbers_(std::move(numbers)), workers_(workers), source_(source) {}

  ProducerNumbers numbers_;
  int64_t workers_ = 0;
  uint64_t source_ = 0;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_PRODUCERS_H_
