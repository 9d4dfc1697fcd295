// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CHECKING_ENV_TRACE_H_
#define RILL_ENVS_CHECKING_ENV_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// Runs of an environment that are to be equal: the same actions at the same
// times. Every step is kept. Lanes that are done are reset, and all lanes once
// on the way.
// Thread-safety: thread-compatible.
class EnvTracer {
 public:
  // Called after the step at time t, before done lanes are reset. Between the
  // two it may do to the environment what should make no difference.
  using Hook = absl::FunctionRef<absl::Status(int64_t t, StepDriver& driver)>;
  // Called before the environment writes all rows: of the root, or below next.
  using BeforeWrite = absl::FunctionRef<absl::Status(bool is_root)>;

  EnvTracer(Env* env, uint64_t seed, int64_t steps)
      : env_(*env), seed_(seed), steps_(steps) {}

  // From a fresh Seed and Reset; a clone of each of `steps` steps.
  absl::StatusOr<std::vector<TensorDict>> Run(Hook hook);
  absl::StatusOr<std::vector<TensorDict>> Run(Hook hook,
                                              BeforeWrite before_write);
  // The steps after `begin`, where `driver` has just made the step at `begin`.
  absl::StatusOr<std::vector<TensorDict>> RunAfter(int64_t begin,
                                                   StepDriver& driver);

  // Legal actions for time t into the environment's step.
  absl::Status Choose(int64_t t) const;
  // Resets what is done at time t, or all.
  absl::Status Advance(int64_t t, StepDriver& driver) const;

 private:
  Env& env_;
  uint64_t seed_;
  int64_t steps_;
};

// FAILED_PRECONDITION that names what does not hold / a correct call that
// returned `status`.
template <typename... Parts>
absl::Status BrokenPromise(const Env& env, absl::string_view promise,
                           const Parts&... found) {
  return FailedPrecondition("CheckEnv: \"", env.name(), "\": ", promise, ": ",
                            found...);
}
absl::Status FailedCall(const Env& env, const absl::Status& status);

// "" if all lanes but those of `ignored` (one entry a lane; empty: none) are
// bit-equal in both, else "step 3, lane 1, leaf ...". `got` begins at time
// `begin` of `want`.
absl::StatusOr<std::string> FirstDifference(
    const std::vector<TensorDict>& want, const std::vector<TensorDict>& got,
    int64_t begin, absl::Span<const uint8_t> ignored = {});

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CHECKING_ENV_TRACE_H_
