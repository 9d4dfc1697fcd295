// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_ATARI_TASK_H_
#define RILL_EXAMPLES_TORCH_DQN_ATARI_TASK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/examples/torch_dqn/trainer.h"

namespace rill::torch_dqn {

struct AtariOptions {
  std::string id = "ALE/Pong-v5";
  double solve_return = 18;  // Of clipped rewards; Pong's best is 21.
  std::string python = "python3";
  std::vector<std::string> python_path = {};  // Where ale_py is, if elsewhere.
};

// A game of the Arcade Learning Environment by Gymnasium, in child processes.
// Frames are gray, of 84 x 84 pixels; an action holds for four of the game's
// frames; rewards are clipped to their sign. The state cannot be saved, so that
// a resumed run begins fresh episodes. Errors of MakeGymnasiumEnv.
// Source: Mnih et al., "Human-level control through deep reinforcement
//   learning", Nature 2015.
absl::StatusOr<Task> AtariTask(const AtariOptions& options);

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_ATARI_TASK_H_
