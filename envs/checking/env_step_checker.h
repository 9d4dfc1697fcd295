// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CHECKING_ENV_STEP_CHECKER_H_
#define RILL_ENVS_CHECKING_ENV_STEP_CHECKER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/envs/checking/env_trace.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// The part of CheckEnv that looks at single calls: specs, what Reset and Step
// write, and calls that can never be right.
// Thread-safety: thread-compatible.
class EnvStepChecker {
 public:
  EnvStepChecker(Env* env, uint64_t seed, int64_t steps)
      : env_(*env), seed_(seed), steps_(steps), tracer_(env, seed, steps) {}

  absl::Status CheckSpecs();  // Before the others.
  absl::Status CheckFirstReset();
  absl::Status CheckSteps();
  absl::Status CheckWrongCalls();

 private:
  absl::Status CheckStepValues(int64_t t, const TensorDict& before,
                               const StepDriver& driver);
  absl::Status CheckFlags(int64_t t, const StepDriver& driver);
  absl::Status CheckPartialReset(int64_t t, StepDriver& driver);

  Env& env_;
  uint64_t seed_;
  int64_t steps_;
  EnvTracer tracer_;
  TensorDictSpec spec_;
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CHECKING_ENV_STEP_CHECKER_H_
