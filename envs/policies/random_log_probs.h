// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_RANDOM_LOG_PROBS_H_
#define RILL_ENVS_POLICIES_RANDOM_LOG_PROBS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/stream.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The log-probabilities of random actions (WriteRandomActions), for the outputs
// of a policy that are those of its action (IsLogProbKey): minus the logarithm
// of the number of legal options, and of the volume of a box.
//
// Shapes: such an output is float32 or float64. Of k elements a lane, each gets
//   the sum over an equal part of an action's choices or elements, in order:
//   [1] all of them, [agents, 1] those of each agent.
// Thread-safety: thread-compatible.
// Cost: one pass over the actions; allocates nothing in host memory after the
//   first call.
class RandomLogProbs {
 public:
  RandomLogProbs() = default;

  // INVALID_ARGUMENT names an output of another dtype, or whose elements do not
  // divide the action.
  static absl::StatusOr<RandomLogProbs> Create(const EnvSpec& env,
                                               const TensorDictSpec& outputs);

  // Writes the outputs in `step` [lanes], which has the root and the random
  // actions. Leaves on a device are written on `stream`, by default the
  // device's default one, and complete on return.
  absl::Status Write(const TensorDict& step, const Stream* stream);

 private:
  struct Output {
    std::string key;
    LeafSpec spec;
    std::vector<size_t> actions;  // Leaves of the action.
  };

  EnvSpec env_;
  std::vector<Output> outputs_;
  std::vector<double> sums_;
};

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_RANDOM_LOG_PROBS_H_
