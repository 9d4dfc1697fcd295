// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_CATCH_ENV_H_
#define RILL_EXAMPLES_TORCH_DQN_CATCH_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill::torch_dqn {

// A task of images. A ball falls, a pixel a step, and a paddle of three pixels
// in the bottom row is to be below it. The ball moves sideways by -2 to 2
// pixels a step and comes back from the walls; the paddle moves by one. So who
// goes after the ball comes too late: its velocity is to be seen, in two frames
// or more, and where it will land.
//
// A ball that is caught is rewarded with 1, and the next one falls. An episode
// terminates with the first one that is missed, and is truncated after
// kCatchBalls. So its return is in [0, kCatchBalls].
//
// pixels uint8 [1, size, size]: 255 the ball and the paddle, 0 all else.
//   action int64: 0 to the left, 1 stays, 2 to the right.
// Thread-safety, Errors: those of Env. States can be saved.
struct CatchOptions {
  int64_t lanes = 1;
  int64_t size = 12;  // In [4, 256].
  uint64_t seed = 0;
};
inline constexpr int64_t kCatchActions = 3;
inline constexpr int64_t kCatchBalls = 10;

// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeCatch(const CatchOptions& options);

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_CATCH_ENV_H_
