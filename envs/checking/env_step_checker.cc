// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/checking/env_step_checker.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/checking/leaf_values.h"
#include "rill/envs/env_spec.h"

namespace rill::envs_internal {

absl::Status EnvStepChecker::CheckSpecs() {
  constexpr absl::string_view kPromise = "specs describe a step";
  if (env_.name().empty()) {
    return BrokenPromise(env_, kPromise, "name is empty");
  }
  if (env_.lanes() < 1) {
    return BrokenPromise(env_, kPromise, "lanes: got ", env_.lanes(),
                         ", want >= 1");
  }
  if (env_.spec().observation.empty()) {
    return BrokenPromise(env_, kPromise, "observation has no leaf");
  }
  absl::StatusOr<TensorDictSpec> spec = StepSpec(env_.spec());
  if (!spec.ok()) return BrokenPromise(env_, kPromise, spec.status().message());
  spec_ = *std::move(spec);
  if (absl::Status same = spec_.CheckLayout("step", env_.step()); !same.ok()) {
    return BrokenPromise(env_, kPromise, same.message());
  }
  // A spec that has no member, such as one whose masks leave nothing, is found
  // here and not in the middle of a run.
  const absl::StatusOr<TensorDict> action = env_.spec().action.Random(
      {env_.lanes()}, Rng(seed_, RngStream::kSpec), 0);
  if (!action.ok()) {
    return BrokenPromise(env_, kPromise, action.status().message());
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckStepValues(int64_t t,
                                             const TensorDict& before,
                                             const StepDriver& driver) {
  // An Env owns its leaves, so nothing else keeps it from writing the root.
  RILL_ASSIGN_OR_RETURN(const TensorDict root, driver.step().Exclude({"next"}));
  if (absl::Status same = root.CheckEqual(before); !same.ok()) {
    return BrokenPromise(env_, "Step writes below next only", "step ", t, ": ",
                         same.message());
  }
  if (absl::Status inside = spec_.CheckValues("values", driver.step());
      !inside.ok()) {
    return BrokenPromise(env_, "values are inside their specs", "step ", t,
                         ": ", inside.message());
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict host, driver.step().To(Device::Cpu()));
  if (const std::string first = FirstNoValue(host); !first.empty()) {
    return BrokenPromise(env_, "values are numbers, and bools 0 or 1", "step ",
                         t, ", ", first);
  }
  return CheckFlags(t, driver);
}

absl::Status EnvStepChecker::CheckFlags(int64_t t, const StepDriver& driver) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(env_.spec()));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(env_.spec()));
  RILL_ASSIGN_OR_RETURN(const TensorDict next, driver.step().GetDict("next"));
  RILL_ASSIGN_OR_RETURN(const TensorDict host, next.To(Device::Cpu()));
  // The lane of element i of n.
  const auto at = [&](absl::string_view key, size_t i, size_t n) {
    const size_t width = n / static_cast<size_t>(env_.lanes());
    return absl::StrCat("step ", t, ", lane ", i / width, ", \"", key, "\": ");
  };
  for (const TensorDictSpec::Leaf& flag : flags.leaves()) {
    // "done" of the lane gives "", "agents/done" gives "agents/".
    absl::string_view group = flag.key;
    if (!absl::ConsumeSuffix(&group, "done")) continue;
    RILL_ASSIGN_OR_RETURN(const auto done, host.Flat<bool>(flag.key));
    RILL_ASSIGN_OR_RETURN(const auto terminated,
                          host.Flat<bool>(absl::StrCat(group, "terminated")));
    RILL_ASSIGN_OR_RETURN(const auto truncated,
                          host.Flat<bool>(absl::StrCat(group, "truncated")));
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i] == (terminated[i] || truncated[i])) continue;
      return BrokenPromise(env_, "done = terminated | truncated",
                           at(flag.key, i, done.size()), "got ", done[i], ", ",
                           terminated[i], ", ", truncated[i]);
    }
  }
  for (const TensorDictSpec::Leaf& leaf : rewards.leaves()) {
    RILL_ASSIGN_OR_RETURN(const auto reward, host.Flat<float>(leaf.key));
    for (size_t i = 0; i < reward.size(); ++i) {
      if (std::isfinite(reward[i])) continue;
      return BrokenPromise(env_, "rewards are finite",
                           at(leaf.key, i, reward.size()), "got ", reward[i]);
    }
  }
  return absl::OkStatus();
}

// Resets one lane alone, another one each time, and looks at the rows of all.
absl::Status EnvStepChecker::CheckPartialReset(int64_t t, StepDriver& driver) {
  RILL_ASSIGN_OR_RETURN(const TensorDict before, driver.root().Clone());
  std::vector<uint8_t> mask(env_.lanes(), 0);
  if (absl::Status status = driver.Reset(mask); !status.ok()) {
    return FailedCall(env_, status);
  }
  if (absl::Status same = driver.root().CheckEqual(before); !same.ok()) {
    return BrokenPromise(env_, "Reset leaves other lanes alone", "step ", t,
                         ", empty mask: ", same.message());
  }
  // An empty mask came first: a Reset that ignores its mask is found here too
  // where there is one lane.
  const auto lane = static_cast<size_t>(t / 8 % env_.lanes());
  mask[lane] = 1;
  if (absl::Status status = driver.Reset(mask); !status.ok()) {
    return FailedCall(env_, status);
  }
  RILL_ASSIGN_OR_RETURN(const std::string difference,
                        FirstDifference({before}, {driver.root()}, 0, mask));
  if (!difference.empty()) {
    return BrokenPromise(env_, "Reset leaves other lanes alone",
                         "reset of lane ", lane, " after step ", t, ": ",
                         difference);
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckFirstReset() {
  absl::StatusOr<StepDriver> made = StepDriver::Create(&env_);
  if (!made.ok()) return FailedCall(env_, made.status());
  StepDriver& driver = *made;
  // Flags that Reset has to take back.
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(env_.spec()));
  for (const TensorDictSpec::Leaf& flag : flags.leaves()) {
    RILL_ASSIGN_OR_RETURN(const Tensor on, flag.spec.One({env_.lanes()}));
    RILL_RETURN_IF_ERROR(env_.step().Find(flag.key)->CopyFrom(on));
  }
  if (absl::Status s = driver.ResetAll(); !s.ok()) return FailedCall(env_, s);
  for (const TensorDictSpec::Leaf& flag : flags.leaves()) {
    RILL_ASSIGN_OR_RETURN(const Tensor values,
                          env_.step().Find(flag.key)->To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(const auto all, values.Flat<bool>());
    const auto on = std::find(all.begin(), all.end(), true);
    if (on == all.end()) continue;
    const int64_t width = values.num_elements() / env_.lanes();
    return BrokenPromise(env_, "flags are false after Reset", "lane ",
                         (on - all.begin()) / width, ": \"", flag.key,
                         "\": got 1");
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckSteps() {
  absl::StatusOr<StepDriver> made = StepDriver::Create(&env_);
  if (!made.ok()) return FailedCall(env_, made.status());
  StepDriver& driver = *made;
  if (absl::Status s = env_.Seed(seed_); !s.ok()) return FailedCall(env_, s);
  if (absl::Status s = driver.ResetAll(); !s.ok()) {
    return FailedCall(env_, s);
  }
  for (int64_t t = 0; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(tracer_.Choose(t));
    RILL_ASSIGN_OR_RETURN(TensorDict before, driver.step().Exclude({"next"}));
    RILL_ASSIGN_OR_RETURN(before, before.Clone());
    absl::Status status = env_.Step();
    if (!status.ok()) return FailedCall(env_, status);
    RILL_RETURN_IF_ERROR(CheckStepValues(t, before, driver));
    if (status = tracer_.Advance(t, driver); !status.ok()) {
      return FailedCall(env_, status);
    }
    if (t % 8 != 7) continue;
    // Every eighth step: it costs a clone of the root and a comparison of rows.
    RILL_RETURN_IF_ERROR(CheckPartialReset(t, driver));
  }
  return absl::OkStatus();
}

absl::Status EnvStepChecker::CheckWrongCalls() {
  const std::vector<uint8_t> mask(env_.lanes() + 1, 1);
  const absl::Status status = env_.Reset(mask);
  if (absl::IsInvalidArgument(status)) return absl::OkStatus();
  return BrokenPromise(env_, "wrong calls are INVALID_ARGUMENT",
                       "Reset with a mask that is too long: got ",
                       status.ToString());
}

}  // namespace rill::envs_internal
