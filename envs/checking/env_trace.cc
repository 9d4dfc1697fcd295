// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/checking/env_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/policies/random_actions.h"

namespace rill::envs_internal {
namespace {

// A copy that many comparisons read without a device.
absl::StatusOr<TensorDict> HostCopy(const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const TensorDict copy, step.Clone());
  return copy.To(Device::Cpu());
}

}  // namespace

absl::Status EnvTracer::Choose(int64_t t) const {
  return WriteRandomActions(env_.spec().action, {.seed = seed_}, t,
                            env_.step());
}

absl::Status EnvTracer::Advance(int64_t t, StepDriver& driver) const {
  RILL_RETURN_IF_ERROR(driver.Advance());
  // Behind the save of CheckEnv, at half of the steps: the steps after a load
  // prove so that the random streams were saved as well.
  if (t != steps_ * 3 / 4) return absl::OkStatus();
  return driver.ResetAll();
}

absl::StatusOr<std::vector<TensorDict>> EnvTracer::Run(Hook hook) {
  std::vector<TensorDict> trace;
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env_));
  RILL_RETURN_IF_ERROR(env_.Seed(seed_));
  RILL_RETURN_IF_ERROR(driver.ResetAll());
  for (int64_t t = 0; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(Choose(t));
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_ASSIGN_OR_RETURN(TensorDict step, HostCopy(driver.step()));
    trace.push_back(std::move(step));
    RILL_RETURN_IF_ERROR(hook(t, driver));
    RILL_RETURN_IF_ERROR(Advance(t, driver));
  }
  return trace;
}

absl::StatusOr<std::vector<TensorDict>> EnvTracer::RunAfter(
    int64_t begin, StepDriver& driver) {
  std::vector<TensorDict> trace;
  // A run resets what is done at time t after its hook, so a state that the
  // hook saved is one before that reset.
  RILL_RETURN_IF_ERROR(Advance(begin, driver));
  for (int64_t t = begin + 1; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(Choose(t));
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_ASSIGN_OR_RETURN(TensorDict step, HostCopy(driver.step()));
    trace.push_back(std::move(step));
    RILL_RETURN_IF_ERROR(Advance(t, driver));
  }
  return trace;
}

absl::Status FailedCall(const Env& env, const absl::Status& status) {
  return BrokenPromise(env, "correct calls succeed", status.ToString());
}

absl::StatusOr<std::string> FirstDifference(const std::vector<TensorDict>& want,
                                            const std::vector<TensorDict>& got,
                                            int64_t begin, int64_t first_lane) {
  for (size_t i = 0; i < got.size(); ++i) {
    const TensorDict& want_step = want[begin + i];
    // Whole steps first: rows are compared only to name the lane.
    if (got[i].CheckEqual(want_step).ok()) continue;
    const int64_t lanes = want_step.batch_shape()[0];
    for (int64_t lane = first_lane; lane < lanes; ++lane) {
      RILL_ASSIGN_OR_RETURN(TensorDict want_row, want_step.Index(lane));
      RILL_ASSIGN_OR_RETURN(TensorDict got_row, got[i].Index(lane));
      const absl::Status status = got_row.CheckEqual(want_row);
      if (!status.ok()) {
        return absl::StrCat("step ", begin + i, ", lane ", lane, ": ",
                            status.message());
      }
    }
  }
  return std::string();
}

}  // namespace rill::envs_internal
