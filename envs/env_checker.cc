// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/env_checker.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/checking/env_step_checker.h"
#include "rill/envs/checking/env_trace.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/steps/step_driver.h"

// How it works: runs are compared. CheckEqualSeeds records a reference run.
// Each later check repeats that run and does something after each step that
// must make no difference: a refused call, a reset of another lane, a save. All
// steps are then compared bit for bit with those of the reference.

namespace rill {
namespace {

using envs_internal::BrokenPromise;
using envs_internal::EnvStepChecker;
using envs_internal::EnvTracer;
using envs_internal::FailedCall;
using envs_internal::FirstDifference;

// Whether a cast of `value` is defined, for integers of up to 64 bits.
bool IsRepresentable(DType dtype, double value) {
  if (IsFloatingPoint(dtype)) return true;
  if (dtype == DType::kBool) return value == 0 || value == 1;
  if (dtype == DType::kUInt8) return value >= 0 && value < 256;
  const double limit = std::ldexp(1.0, 8 * DTypeSize(dtype) - 1);
  return IsInteger(dtype) && value >= -limit && value < limit;
}

// Values of whole leaves, by their keys.
struct Scribbles {
  std::vector<std::pair<std::string, Tensor>> root, next;
};

class EnvChecker {
 public:
  EnvChecker(Env* env, const CheckEnvOptions& options)
      : env_(*env),
        options_(options),
        tracer_(env, options.seed, options.steps) {}

  absl::Status Check();

 private:
  // The promises, in the order in which they are checked.
  absl::Status CheckEqualSeeds();
  absl::StatusOr<Scribbles> MakeScribbles() const;
  absl::Status CheckWrongActions();
  absl::Status CheckWrongAction(int64_t t, const TensorDictSpec::Leaf& leaf);
  absl::Status CheckFinishedLanes();
  absl::Status CheckLaneIndependence();
  absl::Status CheckSaveAndLoad();

  absl::Status CheckReplay(const TensorDict& state, int64_t saved_at);

  // A whole run with `hook` between the steps must equal the reference, but for
  // the lanes that are `ignored`.
  absl::Status CheckRun(absl::string_view promise,
                        absl::Span<const uint8_t> ignored,
                        EnvTracer::Hook hook);

  Env& env_;
  CheckEnvOptions options_;
  EnvTracer tracer_;
  std::vector<TensorDict> reference_;
};

absl::Status EnvChecker::CheckRun(absl::string_view promise,
                                  absl::Span<const uint8_t> ignored,
                                  EnvTracer::Hook hook) {
  // Kept apart from the trace's status: what a hook found comes back as it is,
  // and not as a correct call that failed.
  absl::Status broken;
  const auto guarded = [&](int64_t t, StepDriver& driver) {
    return broken = hook(t, driver);
  };
  const absl::StatusOr<std::vector<TensorDict>> trace = tracer_.Run(guarded);
  RILL_RETURN_IF_ERROR(broken);
  if (!trace.ok()) return FailedCall(env_, trace.status());
  RILL_ASSIGN_OR_RETURN(const std::string difference,
                        FirstDifference(reference_, *trace, 0, ignored));
  if (difference.empty()) return absl::OkStatus();
  return BrokenPromise(env_, promise, difference);
}

// Writes over what Reset and Step shall write.
absl::StatusOr<Scribbles> EnvChecker::MakeScribbles() const {
  const EnvSpec& spec = env_.spec();
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec));
  Scribbles scribbles;
  for (const TensorDictSpec* part : {&spec.observation, &flags, &rewards}) {
    for (const TensorDictSpec::Leaf& leaf : part->leaves()) {
      RILL_ASSIGN_OR_RETURN(Tensor values, leaf.spec.Zero({env_.lanes()}));
      const bool is_bool = leaf.spec.dtype == DType::kBool;
      std::memset(values.raw_data(), is_bool ? 1 : 0x3f,
                  static_cast<size_t>(values.size_bytes()));
      // Flags of the root: EnvStepChecker::CheckFirstReset.
      if (part == &spec.observation) {
        scribbles.root.emplace_back(leaf.key, values);
      }
      scribbles.next.emplace_back(absl::StrCat("next/", leaf.key), values);
    }
  }
  return scribbles;
}

// The second run finds other bytes in the leaves than the first.
absl::Status EnvChecker::CheckEqualSeeds() {
  const auto nothing = [](int64_t, StepDriver&) { return absl::OkStatus(); };
  absl::StatusOr<std::vector<TensorDict>> trace = tracer_.Run(nothing);
  if (!trace.ok()) return FailedCall(env_, trace.status());
  reference_ = *std::move(trace);
  RILL_ASSIGN_OR_RETURN(const Scribbles scribbles, MakeScribbles());
  const auto scribble = [&](bool is_root) -> absl::Status {
    for (const auto& [key, values] :
         is_root ? scribbles.root : scribbles.next) {
      RILL_RETURN_IF_ERROR(env_.step().Find(key)->CopyFrom(values));
    }
    return absl::OkStatus();
  };
  trace = tracer_.Run(nothing, scribble);
  if (!trace.ok()) return FailedCall(env_, trace.status());
  RILL_ASSIGN_OR_RETURN(const std::string difference,
                        FirstDifference(reference_, *trace, 0));
  if (difference.empty()) return absl::OkStatus();
  // A run that is like the second one tells which promise does not hold.
  const auto again = tracer_.Run(nothing, scribble);
  if (!again.ok()) return FailedCall(env_, again.status());
  RILL_ASSIGN_OR_RETURN(const std::string unlike,
                        FirstDifference(*trace, *again, 0));
  return BrokenPromise(env_,
                       unlike.empty()
                           ? "Reset and Step write all of their leaves"
                           : "equal seeds give equal episodes",
                       difference);
}

absl::Status EnvChecker::CheckWrongActions() {
  const auto hook = [&](int64_t t, StepDriver& driver) -> absl::Status {
    if (!env_.spec().legal_actions.empty()) {
      // The other lanes' are legal in the state behind the step. One in which a
      // lane is done may have none.
      RILL_RETURN_IF_ERROR(driver.ReadEnds());
      if (absl::c_linear_search(driver.done(), true)) return absl::OkStatus();
      RILL_RETURN_IF_ERROR(driver.Carry());
      RILL_RETURN_IF_ERROR(tracer_.Choose(t));
    }
    for (const TensorDictSpec::Leaf& leaf : env_.spec().action.leaves()) {
      RILL_RETURN_IF_ERROR(CheckWrongAction(t, leaf));
    }
    return absl::OkStatus();
  };
  return CheckRun("refused actions move no lane", {}, hook);
}

absl::Status EnvChecker::CheckWrongAction(int64_t t,
                                          const TensorDictSpec::Leaf& leaf) {
  const LeafSpec& spec = leaf.spec;
  const int64_t lane = env_.lanes() - 1;  // The others could move before it.
  const Tensor& action = *env_.step().Find(leaf.key);
  RILL_ASSIGN_OR_RETURN(const Tensor right, action.Clone());
  // One candidate or more for each domain of a spec. Those that the dtype
  // cannot hold are skipped, and below those that the spec allows.
  for (double value :
       {static_cast<double>(spec.num_categories), spec.high + 1, spec.low - 1,
        2.0, std::numeric_limits<double>::quiet_NaN()}) {
    if (!IsRepresentable(spec.dtype, value)) continue;
    RILL_ASSIGN_OR_RETURN(Tensor wrong,
                          Tensor::From<double>({value}, Shape({})));
    RILL_ASSIGN_OR_RETURN(wrong, Cast(wrong, spec.dtype));
    RILL_ASSIGN_OR_RETURN(wrong, wrong.Expand(spec.shape));
    RILL_ASSIGN_OR_RETURN(wrong, wrong.Contiguous());
    RILL_ASSIGN_OR_RETURN(Tensor row, action.Index(lane));
    RILL_RETURN_IF_ERROR(row.CopyFrom(wrong));
    if (spec.CheckValues(leaf.key, {}, row).ok()) continue;
    const absl::Status status = env_.Step();
    if (!absl::IsInvalidArgument(status) ||
        !absl::StrContains(status.message(), absl::StrCat(lane))) {
      return BrokenPromise(
          env_,
          "wrong actions are INVALID_ARGUMENT and name the lane, also where "
          "another lane is finished",
          "step ", t, ", lane ", lane, ", \"", leaf.key, "\" ",
          row.DebugString(), ": got ", status.ToString());
    }
  }
  // The next leaf is then the only wrong one.
  return action.CopyFrom(right);
}

absl::Status EnvChecker::CheckFinishedLanes() {
  const auto hook = [&](int64_t t, StepDriver& driver) -> absl::Status {
    RILL_RETURN_IF_ERROR(driver.ReadEnds());
    for (int64_t lane = 0; lane < env_.lanes(); ++lane) {
      if (!driver.done()[lane]) continue;
      const absl::Status status = env_.Step();
      if (absl::IsFailedPrecondition(status) &&
          absl::StrContains(status.message(), absl::StrCat(lane))) {
        return absl::OkStatus();
      }
      return BrokenPromise(
          env_,
          "steps of finished lanes are FAILED_PRECONDITION and name "
          "the lane",
          "step ", t + 1, ", lane ", lane, ": got ", status.ToString());
    }
    return absl::OkStatus();
  };
  return CheckRun("refused steps move no lane", {}, hook);
}

// Resets lanes behind a step. Their next becomes the new root: what is carried
// over then is where their episodes have begun, with its legal actions.
absl::Status Restart(absl::Span<const uint8_t> mask, StepDriver& driver) {
  RILL_RETURN_IF_ERROR(driver.Reset(mask));
  for (const std::string& key : driver.root().LeafKeys()) {
    const Tensor* const next = driver.step().Find(absl::StrCat("next/", key));
    if (next == nullptr) continue;
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      RILL_ASSIGN_OR_RETURN(const Tensor from,
                            driver.root().Find(key)->Index(lane));
      RILL_ASSIGN_OR_RETURN(const Tensor to, next->Index(lane));
      RILL_RETURN_IF_ERROR(to.CopyFrom(from));
    }
  }
  return absl::OkStatus();
}

absl::Status EnvChecker::CheckLaneIndependence() {
  // Extra resets of some lanes, whose rows are not looked at: of the first one,
  // of the odd ones, and of the even ones. So lane 0 has all others as
  // witnesses, and each lane those beside it.
  const auto check = [&](int64_t first, int64_t distance) {
    std::vector<uint8_t> mask(env_.lanes(), 0);
    for (int64_t lane = first; lane < env_.lanes(); lane += distance) {
      mask[lane] = 1;
    }
    return CheckRun("lanes do not depend on each other", mask,
                    [&](int64_t t, StepDriver& driver) {
                      return t % 3 == 0 ? Restart(mask, driver)
                                        : absl::OkStatus();
                    });
  };
  RILL_RETURN_IF_ERROR(check(0, env_.lanes()));
  if (env_.lanes() == 1) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(check(1, 2));
  return env_.lanes() > 2 ? check(0, 2) : absl::OkStatus();
}

absl::Status EnvChecker::CheckReplay(const TensorDict& state,
                                     int64_t saved_at) {
  if (env_.LoadState(TensorDict()).ok()) {
    return BrokenPromise(env_, "LoadState refuses what SaveState did not write",
                         "an empty dictionary: got OK");
  }
  if (absl::Status s = env_.LoadState(state); !s.ok())
    return FailedCall(env_, s);
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env_));
  // LoadState restores no leaf of step(): the caller has those.
  RILL_RETURN_IF_ERROR(driver.mutable_step()->CopyFrom(reference_[saved_at]));
  absl::StatusOr<std::vector<TensorDict>> rest =
      tracer_.RunAfter(saved_at, driver);
  if (!rest.ok()) return FailedCall(env_, rest.status());
  RILL_ASSIGN_OR_RETURN(const std::string difference,
                        FirstDifference(reference_, *rest, saved_at + 1));
  if (difference.empty()) return absl::OkStatus();
  return BrokenPromise(env_, "LoadState goes on where SaveState was",
                       difference);
}

absl::Status EnvChecker::CheckSaveAndLoad() {
  const int64_t saved_at = options_.steps / 2;
  absl::StatusOr<TensorDict> state = absl::UnknownError("never saved");
  TensorDict copy;
  const auto hook = [&](int64_t t, StepDriver&) -> absl::Status {
    if (t != saved_at) return absl::OkStatus();
    state = env_.SaveState();
    if (absl::IsUnimplemented(state.status())) return absl::OkStatus();
    if (!state.ok()) return FailedCall(env_, state.status());
    // Steps that follow change the saved state if it shares memory with the
    // environment; the copy shows that.
    RILL_ASSIGN_OR_RETURN(copy, state->Clone());
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(CheckRun("SaveState changes nothing", {}, hook));
  if (absl::IsUnimplemented(state.status())) return absl::OkStatus();
  if (absl::Status same = state->CheckEqual(copy); !same.ok()) {
    return BrokenPromise(env_, "a saved state is a copy", same.message());
  }
  return CheckReplay(copy, saved_at);
}

absl::Status EnvChecker::Check() {
  if (options_.steps < 1) {
    return InvalidArgument("CheckEnv: steps: got ", options_.steps,
                           ", want >= 1");
  }
  EnvStepChecker step_checker(&env_, options_.seed, options_.steps);
  RILL_RETURN_IF_ERROR(step_checker.CheckSpecs());
  RILL_RETURN_IF_ERROR(step_checker.CheckFirstReset());
  RILL_RETURN_IF_ERROR(step_checker.CheckSteps());
  RILL_RETURN_IF_ERROR(step_checker.CheckWrongCalls());
  RILL_RETURN_IF_ERROR(CheckEqualSeeds());
  RILL_RETURN_IF_ERROR(CheckWrongActions());
  RILL_RETURN_IF_ERROR(CheckFinishedLanes());
  RILL_RETURN_IF_ERROR(CheckLaneIndependence());
  RILL_RETURN_IF_ERROR(CheckSaveAndLoad());
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env_));
  return driver.ResetAll();
}

}  // namespace

absl::Status CheckEnv(Env& env, const CheckEnvOptions& options) {
  return CatchExceptions([&] { return EnvChecker(&env, options).Check(); },
                         "CheckEnv: \"", env.name(), "\"");
}

}  // namespace rill
