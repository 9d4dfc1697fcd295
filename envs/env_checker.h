// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ENV_CHECKER_H_
#define RILL_ENVS_ENV_CHECKER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/envs/env.h"

namespace rill {

// Steps `env` with random actions and checks the contract of Env:
// - layouts and values fit the specs, and no value is NaN or a bool of a byte
//   that is neither 0 nor 1; done = terminated | truncated;
// - Reset and Step write all of their leaves; Reset leaves other lanes alone;
// - equal seeds give equal episodes, whatever the lanes beside do;
// - each state has a legal action (EnvSpec::legal_actions), and these alone are
//   taken;
// - wrong actions, and steps of finished lanes, are refused and move no lane;
// - LoadState resumes bit for bit where SaveState was.
//
// FAILED_PRECONDITION names the first promise that does not hold, with lane,
// step and values. The environment is left reset.
struct CheckEnvOptions {
  int64_t steps = 200;
  uint64_t seed = 0;
};
absl::Status CheckEnv(Env& env, const CheckEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_ENV_CHECKER_H_
