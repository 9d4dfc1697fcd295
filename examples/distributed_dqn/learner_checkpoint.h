// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_CHECKPOINT_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"

namespace rill::distributed_dqn {

// How far a learner came, beside its networks and optimizer.
struct LearnerPosition {
  int64_t updates = 0;
  int64_t starts = 0;  // How often it was begun or resumed.
};

// As a RunCheckpoint, with its errors.
absl::Status SaveLearner(const std::string& directory,
                         const LearnerPosition& position,
                         dqn_cartpole::DoubleDqn& learner);
// The beginning, with the learner as it is, where nothing was saved.
absl::StatusOr<LearnerPosition> OpenLearner(const std::string& directory,
                                            dqn_cartpole::DoubleDqn* learner);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_CHECKPOINT_H_
