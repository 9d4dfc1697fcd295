// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_JOINED_BATCH_H_
#define RILL_COLLECTORS_WORKERS_JOINED_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// Joins the batches of all workers, [lanes, steps], to one, as CatResults says.
// Its memory is made once.
//
// Padding: along lanes and stacked, every worker has as many steps as the
// longest. Steps that are missing are zeros, with `collector/traj_ids` -1 and
// `collector/mask` false. Along time nothing is missing.
//
// Thread-safety: thread-compatible.
class JoinedBatch {
 public:
  struct Options {
    TensorDictSpec spec = {};  // Of a step, with int64 `collector/traj_ids`.
    CatResults cat = CatResults::kLanes;
    int64_t lanes = 1;                // Of a worker.
    std::vector<int64_t> steps = {};  // The most of each worker.
    // Batches may be shorter: those that are padded have a mask. Where workers
    // differ they have one too.
    bool may_be_short = false;
  };

  JoinedBatch() = default;
  // INVALID_ARGUMENT where the mask takes the name of a leaf.
  static absl::StatusOr<JoinedBatch> Create(const Options& options);

  // Copies the batch of a worker, [lanes, 1 to its most], and returns where it
  // lies now. Workers come in order; worker 0 begins the next joined batch.
  // INVALID_ARGUMENT for a batch of another shape.
  absl::StatusOr<TensorDict> Add(int64_t worker, const TensorDict& batch);
  // All workers' batches, once all were added. The next Add changes them.
  absl::StatusOr<TensorDict> Finish() const;

 private:
  bool is_padded() const { return cat_ != CatResults::kTime; }
  // Fills the rows of a worker behind its `steps` steps, and marks all.
  void Pad(int64_t worker, int64_t steps);

  CatResults cat_ = CatResults::kLanes;
  int64_t lanes_ = 0;
  std::vector<int64_t> most_;
  int64_t time_ = 0;   // Steps of rows_.
  int64_t end_ = 0;    // Along time: the steps that were added.
  TensorDict rows_;    // [workers * lanes, time_], or [lanes, time_].
  TensorDict joined_;  // That, with the mask, as it is handed out.
  absl::Span<int64_t> trajectories_;
  absl::Span<bool> mask_;  // Empty: there is none.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_JOINED_BATCH_H_
