// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_REPEATS_WORKER_COLLECTOR_H_
#define RILL_COLLECTORS_REPEATS_WORKER_COLLECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// The message that starts a worker.
WorkerStart StartOf(const MultiCollectorOptions& options, int64_t worker,
                    int64_t restarts, int64_t producer);
// Whether workers, which are processes, say when their steps begin.
bool TimesSteps(const MultiCollectorOptions& options);

// A worker's parts, and the collector that steps them.
// Thread-safety: thread-compatible.
struct WorkerCollector {
  struct Options {
    WorkerStart start = {};
    absl::string_view argument = "";
    // The worker begins with them; empty: with fresh ones.
    TensorDict statistics = {};
    // These three are not owned, outlive it, and may be null.
    WeightStore::Reader* weights = nullptr;
    Policy* inference = nullptr;
    std::function<bool()> is_interrupted = nullptr;
  };

  // INVALID_ARGUMENT where `make` gives no environment. Errors of the parts.
  static absl::StatusOr<WorkerCollector> Create(const WorkerFunction& make,
                                                Options options);

  std::unique_ptr<Policy> policy = nullptr;
  std::function<absl::Status()> before_batch = nullptr;
  std::unique_ptr<SyncCollector> collector = nullptr;
  int64_t lanes = 0;
  TensorDict fresh = {};  // Statistics before the first row.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_REPEATS_WORKER_COLLECTOR_H_
