// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_HELD_BATCH_H_
#define RILL_COLLECTORS_WORKERS_HELD_BATCH_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/statusor.h"
#include "rill/collectors/workers/worker_statistics.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// A batch that a worker has made and nobody has taken yet, or a cut.
struct HeldBatch {
  std::optional<TensorDict> batch;  // None: a cut of all its lanes.
  WriteInfo info;                   // Of a cut: producer and first lane.
  TensorDict statistics = {};       // Of a batch.
};

// Writes the batch to the sink, or the cut of `lanes` lanes. An exception of
// the sink is its error.
absl::Status Deliver(const HeldBatch& held, int64_t lanes, Sink& sink);

// What a worker holds, in order, as entries `held/<worker>/<number>` of a
// state. A batch is `batch`, `info`, int64 [4]: producer, first lane, policy
// version, sequence, and `statistics`, where transforms have some. A cut is
// `cut`, int64 [2]: producer, first lane.
void SaveHeld(int64_t worker, const std::deque<HeldBatch>& held,
              StateWriter* state);

// What batches must be.
struct HeldLayout {
  const TensorDictSpec& spec;
  const WorkerStatistics& statistics;
  int64_t lanes;
  int64_t least_steps;
  int64_t most_steps;
};
// FAILED_PRECONDITION names what does not fit. Batches that were saved before
// 0.3 have no statistics.
absl::StatusOr<std::deque<HeldBatch>> LoadHeld(int64_t worker,
                                               const HeldLayout& layout,
                                               const StateReader& state);

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_HELD_BATCH_H_
