// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_CHECKPOINT_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_CHECKPOINT_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/pipeline.h"
#include "rill/examples/dqn_cartpole/run_state.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::dqn_cartpole {

// A run as a directory:
//
//   rill.json   manifest: configuration, counters, checksums of all files below
//   replay/     ReplayBuffer::Save: rows, cursors, sampler, batch number
//   learner/    networks and optimizer, as a memmap directory
//   collector/  environment, transforms and counters, as a memmap directory
//   log/        what SaveLog returned, as a memmap directory
//
// No generator is in it: all draws are functions of the seed and of counters.

// Replaces `directory` atomically: a reader, or a crash at any time, sees the
// old checkpoint or the new one. Errors as ReplaceDirectory; the old one stays.
// `log` is of examples/program/saved_log.h.
absl::Status SaveCheckpoint(const std::string& directory, const RunState& state,
                            const TensorDict& log, Pipeline& pipeline);

struct LoadedCheckpoint {
  RunState state;  // Without the points of its curve, which `log` has.
  TensorDict log;
  Pipeline pipeline;
};

// Loads what SaveCheckpoint wrote and joins it with the `given` flags of
// `wanted` (MergeForResume). Writes nothing. NOT_FOUND: no checkpoint;
// DATA_LOSS: damaged, names the file and both sides; FAILED_PRECONDITION:
// another kind of directory, or a flag that would bend the curve.
absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(
    const std::string& directory, const Config& wanted,
    const std::set<std::string>& given);

// Removes from a run's folder the files that a killed run left half written
// beside those that they replace; no other run may be at work there.
absl::Status RemoveHalfWritten(const std::string& run_dir);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_CHECKPOINT_H_
