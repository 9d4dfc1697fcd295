// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_GYMNASIUM_GYMNASIUM_ENV_H_
#define RILL_ENVS_GYMNASIUM_GYMNASIUM_ENV_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/envs/env.h"

namespace rill {

// Any Gymnasium environment: `lanes` copies that step in Python child
// processes. TorchRL's GymEnv in a ParallelEnv.
//
// The leaves of step() lie in memory that the children share, so nothing is
// copied between processes. Lanes are dealt to the children in order, as evenly
// as can be.
//
// Specs: Box gives a leaf of its dtype and bounds. Discrete gives int64 options
//   0 .. n - 1; its `start` is added in the child. MultiDiscrete is the same for
//   each choice, MultiBinary is int8. Leaves of a Dict are "observation/name",
//   those of a Tuple "observation/0"; actions the same below "action".
//   INVALID_ARGUMENT names any other space.
// Seeds: a lane's reset number e after Seed passes Gymnasium
//   Rng(seed, RngStream::kEnv).Bits64(e, lane) >> 33, with e from 0.
// Resets: a child resets its lanes that ended before EndStep returns. Reset
//   copies their first observations to the root, and has the errors. Seed throws
//   these away, and the lanes are reset once more.
// Errors: Python's exception, a wrong shape or a reward that is not finite
//   fails its lane, INTERNAL. A child that ends (UNAVAILABLE) or misses a
//   deadline (DEADLINE_EXCEEDED) fails all of its lanes; the next Reset starts
//   it anew. The code is that of the first lane. FAILED_PRECONDITION: a call
//   between BeginStep and EndStep. SaveState is UNIMPLEMENTED.
// Thread-safety: thread-compatible. BeginStep sends, EndStep waits.
// Cost: a step is one round trip to each child, at the same time. A Reset of
//   lanes that have not ended is another.
// Processors: with `pin_children`, two children or more have equal parts of
//   this process' processors for themselves, where there are as many. Children
//   and EndStep then wait awake for each other, up to 50 us at a time, before
//   they sleep. Else the kernel places the children on all of these processors,
//   and all sleep at once.
//
// Example (GymnasiumEnvTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeGymnasiumEnv(
//       {.id = "CartPole-v1", .lanes = 8, .children = 2}));
struct GymnasiumEnvOptions {
  std::string id;
  int64_t lanes = 1;
  int children = 1;           // In [1, lanes].
  std::string kwargs = "{}";  // Arguments of gymnasium.make, as JSON.
  uint64_t seed = 0;
  std::string python = "python3";
  std::vector<std::string> python_path = {};  // Before other entries.
  std::vector<std::string> imports = {};      // Modules that register.
  absl::Duration start_timeout = absl::Seconds(60);
  // For one EndStep or Reset, all children together.
  absl::Duration step_timeout = absl::Seconds(30);
  bool pin_children = true;  // See Processors.
};
absl::StatusOr<std::unique_ptr<Env>> MakeGymnasiumEnv(
    const GymnasiumEnvOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_GYMNASIUM_GYMNASIUM_ENV_H_
