// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RECURRENT_RECALL_ENV_H_
#define RILL_EXAMPLES_PPO_RECURRENT_RECALL_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill::ppo_recurrent {

// A task that cannot be solved without memory. The first observation shows one
// of four cues; later ones are blank. After 1 to 6 steps the cue is asked for,
// and again after as many. A right answer is rewarded with 1. An episode
// terminates with the second answer, and is truncated at step 12, before the
// second answer in 3 of 36. So the best mean return is 1.917; guesses get 0.48.
//
// observation float32 [5]: the cue in one of four places, and whether it is
//   asked for. action_mask bool [5]: the legal actions, which the spec declares;
//   an answer where it is asked for, else to wait. action int64: 0 waits, 1 + i answers cue i.
// Thread-safety: that of Env.
struct RecallOptions {
  int64_t lanes = 1;
  uint64_t seed = 0;
};
inline constexpr int64_t kRecallCues = 4;
inline constexpr double kRecallBestReturn = 2 - 3.0 / 36;

absl::StatusOr<std::unique_ptr<Env>> MakeRecall(const RecallOptions& options);

}  // namespace rill::ppo_recurrent

#endif  // RILL_EXAMPLES_PPO_RECURRENT_RECALL_ENV_H_
