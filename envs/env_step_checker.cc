// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/env_step_checker.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_spec.h"
#include "rill/envs/steps/in_place_check.h"

namespace rill::envs_internal {

absl::Status EnvStepChecker::CheckSpecs() {
  constexpr absl::string_view kPromise = "specs describe a step";
  if (env_.name().empty()) {
    return BrokenPromise(env_, kPromise, "name is empty");
  }
  if (env_.lanes() < 1) {
    return BrokenPromise(
        env_, kPromise,
        absl::StrCat("lanes: got ", env_.lanes(), ", want >= 1"));
  }
  if (env_.observation_spec().empty()) {
    return BrokenPromise(env_, kPromise, "observation_spec has no leaf");
  }
  absl::StatusOr<TensorDictSpec> spec = StepSpec(env_);
  if (!spec.ok()) return BrokenPromise(env_, kPromise, spec.status().message());
  spec_ = *std::move(spec);
  absl::StatusOr<Tensor> action = env_.action_spec().Random(
      {env_.lanes()}, Rng(seed_, RngStream::kSpec), 0);
  if (!action.ok()) {
    return BrokenPromise(env_, kPromise, action.status().message());
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckStepValues(int64_t t,
                                             const TensorDict& before,
                                             const StepDriver& driver) {
  RILL_ASSIGN_OR_RETURN(const TensorDict root, driver.step().Exclude({"next"}));
  if (absl::Status same = root.CheckEqual(before); !same.ok()) {
    return BrokenPromise(env_, "Step writes below next only",
                         absl::StrCat("step ", t, ": ", same.message()));
  }
  if (absl::Status inside = spec_.CheckValues("values", driver.step());
      !inside.ok()) {
    return BrokenPromise(env_, "values are inside their specs",
                         absl::StrCat("step ", t, ": ", inside.message()));
  }
  return CheckFlags(t, driver);
}

absl::Status EnvStepChecker::CheckFlags(int64_t t, const StepDriver& driver) {
  const auto at = [t](int64_t lane) {
    return absl::StrCat("step ", t, ", lane ", lane, ": ");
  };
  RILL_ASSIGN_OR_RETURN(auto terminated,
                        driver.step().Flat<bool>("next/terminated"));
  RILL_ASSIGN_OR_RETURN(auto truncated,
                        driver.step().Flat<bool>("next/truncated"));
  for (int64_t lane = 0; lane < env_.lanes(); ++lane) {
    if (driver.done()[lane] != (terminated[lane] || truncated[lane])) {
      return BrokenPromise(
          env_, "done = terminated | truncated",
          absl::StrCat(at(lane), "got ", driver.done()[lane], ", ",
                       terminated[lane], ", ", truncated[lane]));
    }
    if (!std::isfinite(driver.reward()[lane])) {
      return BrokenPromise(
          env_, "rewards are finite",
          absl::StrCat(at(lane), "got ", driver.reward()[lane]));
    }
  }
  return absl::OkStatus();
}

// Resets lane 0 alone and looks at the rows of all.
absl::Status EnvStepChecker::CheckPartialReset(int64_t t, StepDriver& driver) {
  RILL_ASSIGN_OR_RETURN(const TensorDict before, driver.root().Clone());
  std::vector<uint8_t> mask(env_.lanes(), 0);
  if (absl::Status status = driver.Reset(mask); !status.ok()) {
    return FailedCall(env_, status);
  }
  if (absl::Status same = driver.root().CheckEqual(before); !same.ok()) {
    return BrokenPromise(
        env_, "Reset leaves other lanes alone",
        absl::StrCat("step ", t, ", empty mask: ", same.message()));
  }
  mask[0] = 1;
  if (absl::Status status = driver.Reset(mask); !status.ok()) {
    return FailedCall(env_, status);
  }
  RILL_ASSIGN_OR_RETURN(const std::string difference,
                        FirstDifference({before}, {driver.root()}, 0, 1));
  if (!difference.empty()) {
    return BrokenPromise(
        env_, "Reset leaves other lanes alone",
        absl::StrCat("reset of lane 0 after step ", t, ": ", difference));
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckFirstReset() {
  absl::StatusOr<StepDriver> made = StepDriver::Create(&env_);
  if (!made.ok()) return FailedCall(env_, made.status());
  StepDriver& driver = *made;
  // Flags that Reset has to take back.
  for (absl::string_view flag : {"done", "terminated", "truncated"}) {
    RILL_ASSIGN_OR_RETURN(auto values, driver.step().Flat<bool>(flag));
    std::fill(values.begin(), values.end(), true);
  }
  if (absl::Status s = driver.ResetAll(); !s.ok()) return FailedCall(env_, s);
  for (absl::string_view flag : {"done", "terminated", "truncated"}) {
    RILL_ASSIGN_OR_RETURN(auto values, driver.step().Flat<bool>(flag));
    for (int64_t lane = 0; lane < env_.lanes(); ++lane) {
      if (!values[lane]) continue;
      return BrokenPromise(
          env_, "flags are false after Reset",
          absl::StrCat("lane ", lane, ": \"", flag, "\": got 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckSteps() {
  absl::StatusOr<StepDriver> made = StepDriver::Create(&env_);
  if (!made.ok()) return FailedCall(env_, made.status());
  StepDriver& driver = *made;
  const InPlaceCheck in_place(driver.step());
  if (absl::Status s = env_.Seed(seed_); !s.ok()) return FailedCall(env_, s);
  if (absl::Status s = driver.ResetAll(); !s.ok()) {
    return FailedCall(env_, s);
  }
  for (int64_t t = 0; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(tracer_.Choose(t, driver));
    RILL_ASSIGN_OR_RETURN(TensorDict before, driver.step().Exclude({"next"}));
    RILL_ASSIGN_OR_RETURN(before, before.Clone());
    absl::Status status = env_.Step(driver.mutable_step());
    if (!status.ok()) return FailedCall(env_, status);
    status = in_place.Check(env_.name(), driver.step());
    if (!status.ok()) {
      return BrokenPromise(env_, "leaves are filled in place",
                           status.message());
    }
    RILL_RETURN_IF_ERROR(CheckStepValues(t, before, driver));
    if (status = tracer_.Advance(t, driver); !status.ok()) {
      return FailedCall(env_, status);
    }
    if (t % 8 != 7) continue;
    RILL_RETURN_IF_ERROR(CheckPartialReset(t, driver));
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckWrongCalls() {
  constexpr absl::string_view kPromise = "wrong calls are INVALID_ARGUMENT";
  RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(env_));
  TensorDict empty({env_.lanes()});
  const std::vector<uint8_t> mask(env_.lanes() + 1, 1);
  const auto one_a_lane = absl::MakeConstSpan(mask).first(env_.lanes());
  const auto check = [&](absl::string_view call, const absl::Status& status) {
    if (absl::IsInvalidArgument(status)) return absl::OkStatus();
    return BrokenPromise(env_, kPromise,
                         absl::StrCat(call, ": got ", status.ToString()));
  };
  RILL_RETURN_IF_ERROR(
      check("Reset with a mask that is too long", env_.Reset(mask, &step)));
  RILL_RETURN_IF_ERROR(
      check("Reset of a root without leaves", env_.Reset(one_a_lane, &empty)));
  return check("Step of a step without leaves", env_.Step(&empty));
}

}  // namespace rill::envs_internal
