// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/env_checker.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 3;

// Faults of an environment; empty functions leave CountingEnv as it is.
struct Fault {
  std::string name = "none";
  // The expected text of CheckEnv.
  std::string promise = "";
  std::function<absl::Status(Env&, const ResetMask&)> reset = nullptr;
  std::function<absl::Status(Env&)> step = nullptr;
  std::function<absl::StatusOr<TensorDict>(const Env&)> save = nullptr;
  std::function<absl::Status(Env&, const TensorDict&)> load = nullptr;
  bool is_bounded = true;
  std::string unwritten = "";  // A leaf.
};

// CountingEnv's spec, where the observation keeps below 10 here if it is
// bounded.
EnvSpec BrokenSpec(const Env& env, bool is_bounded) {
  EnvSpec spec = env.spec();
  spec.name = "Broken";
  if (!is_bounded) return spec;
  RILL_EXPECT_OK(spec.observation.Set(
      "observation", LeafSpec::Bounded(DType::kFloat32, {1}, 0, 10)));
  return spec;
}

// CountingEnv's step, with another tensor for a leaf that it shall not write.
TensorDict BrokenStep(const Env& env, const std::string& unwritten) {
  TensorDict step = env.step();
  if (unwritten.empty()) return step;
  RILL_EXPECT_OK(step.Set(unwritten, *step.Find(unwritten)->Clone()));
  return step;
}

// CountingEnv with a fault.
class BrokenEnv final : public Env {
 public:
  BrokenEnv(std::unique_ptr<Env> env, Fault fault)
      : Env(BrokenSpec(*env, fault.is_bounded),
            BrokenStep(*env, fault.unwritten)),
        env_(std::move(env)),
        fault_(std::move(fault)) {}

  absl::Status Seed(uint64_t seed) override { return env_->Seed(seed); }
  absl::Status Reset(const ResetMask& mask) override {
    return fault_.reset ? fault_.reset(*env_, mask) : env_->Reset(mask);
  }
  absl::Status BeginStep() override {
    return fault_.step ? fault_.step(*env_) : env_->Step();
  }
  absl::StatusOr<TensorDict> SaveState() const override {
    return fault_.save ? fault_.save(*env_) : env_->SaveState();
  }
  absl::Status LoadState(const TensorDict& state) override {
    return fault_.load ? fault_.load(*env_, state) : env_->LoadState(state);
  }

 private:
  const std::unique_ptr<Env> env_;
  const Fault fault_;
};

absl::Status Check(const Fault& fault) {
  RILL_ASSIGN_OR_RETURN(
      auto env, MakeCountingEnv(
                    {.lanes = kLanes, .episode_steps = 4, .stagger_steps = 1}));
  BrokenEnv broken(std::move(env), fault);
  return CheckEnv(broken);
}

// Steps, then changes `next` of one lane by `change`.
template <typename T>
auto AfterStep(const char* key, std::function<void(T*)> change) {
  return [key, change](Env& env) -> absl::Status {
    RILL_RETURN_IF_ERROR(env.Step());
    RILL_ASSIGN_OR_RETURN(auto values, env.step().Flat<T>(key));
    change(&values[1]);
    return absl::OkStatus();
  };
}

int64_t* Actions(const Env& env) {
  return env.step().Find("action")->data<int64_t>();
}

std::vector<Fault> ResetFaults() {
  return {
      {.name = "ResetKeepsFlags",
       .promise = "flags are false after Reset",
       .reset = [](Env& env, const ResetMask& mask) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Reset(mask));
         RILL_ASSIGN_OR_RETURN(auto flag, env.step().Flat<bool>("terminated"));
         flag[1] = true;
         return absl::OkStatus();
       }},
      {.name = "ResetWritesAllRows",
       .promise = "Reset leaves other lanes alone",
       .reset = [](Env& env, const ResetMask& mask) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Reset(mask));
         RILL_ASSIGN_OR_RETURN(auto x, env.step().Flat<float>("observation"));
         for (float& value : x) value = 0;
         return absl::OkStatus();
       }},
      {.name = "ResetMovesOtherLanes",
       .promise = "lanes do not depend on each other",
       .reset = [](Env& env, const ResetMask& mask) -> absl::Status {
         // Rows of other lanes stay, but their episodes begin anew.
         RILL_RETURN_IF_ERROR(env.Reset(mask));
         if (mask.lanes.size() != kLanes || mask.lanes[0] == 0 ||
             mask.lanes[2] != 0) {
           return absl::OkStatus();
         }
         TensorDict step = env.step();
         RILL_ASSIGN_OR_RETURN(const TensorDict copy, step.Clone());
         RILL_RETURN_IF_ERROR(env.Reset(std::vector<uint8_t>{0, 0, 1}));
         return step.CopyFrom(copy);
       }},
      {.name = "ResetTakesAnyMask",
       .promise = "wrong calls are INVALID_ARGUMENT",
       .reset =
           [](Env& env, const ResetMask& mask) {
             return env.Reset(mask.lanes.first(kLanes));
           }},
      {.name = "ResetFails",
       .promise = "correct calls succeed",
       .reset = [](Env&, const ResetMask&) -> absl::Status {
         return absl::UnavailableError("gone");
       }},
  };
}

// As AfterReset or after a step: `change` all rows of a leaf.
absl::Status ChangeFloats(
    Env& env, const char* key,
    const std::function<void(absl::Span<float>)>& change) {
  RILL_ASSIGN_OR_RETURN(const auto values, env.step().Flat<float>(key));
  change(values);
  return absl::OkStatus();
}

// What a leaf without bounds, a row beside its own and bytes that were there
// before let through.
std::vector<Fault> UnseenFaults() {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  return {
      {.name = "NanWithoutBounds",
       .promise = "values are numbers, and bools 0 or 1: step 0, lane 1, "
                  "\"next/observation\"[0]: got nan",
       .step =
           AfterStep<float>("next/observation", [nan](float* x) { *x = nan; }),
       .is_bounded = false},
      {.name = "NanOfAReset",
       .promise = "lane 0, \"observation\"[0]: got nan",
       .reset = [nan](Env& env, const ResetMask& mask) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Reset(mask));
         return ChangeFloats(env, "observation", [&](absl::Span<float> x) {
           if (mask.lanes[0] != 0) x[0] = nan;
         });
       },
       .is_bounded = false},
      {.name = "FlagOfByteTwo",
       .promise = "lane 2, \"next/done\"[0]: got a bool of byte 2",
       .step = [](Env& env) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Step());
         for (const char* key : {"next/terminated", "next/done"}) {
           std::byte* const flag = env.step().Find(key)->raw_data();
           if (flag[2] != std::byte{0}) flag[2] = std::byte{2};
         }
         return absl::OkStatus();
       }},
      {.name = "WritesTheNextLanesRow",
       .promise = "lanes do not depend on each other: step 1, lane 1",
       .step = [](Env& env) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Step());
         return ChangeFloats(env, "next/observation", [](absl::Span<float> x) {
           for (int64_t lane = kLanes - 1; lane > 0; --lane) {
             x[lane] = x[lane - 1];
           }
         });
       }},
      // Of the first lane only the row of the one before would show it.
      {.name = "WritesTheRowOfTheLaneBefore",
       .promise = "lanes do not depend on each other: step 1, lane 0",
       .step = [](Env& env) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Step());
         return ChangeFloats(env, "next/observation",
                             [](absl::Span<float> x) { x[0] = x[1]; });
       }},
      {.name = "ResetOfTheLastLaneWritesTheOneBefore",
       .promise = "Reset leaves other lanes alone: reset of lane 2",
       .reset = [](Env& env, const ResetMask& mask) -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Reset(mask));
         return ChangeFloats(env, "observation", [&](absl::Span<float> x) {
           if (mask.lanes.size() == kLanes && mask.lanes[2] != 0) x[1] = x[2];
         });
       }},
      {.name = "StepNeverWritesALeaf",
       .promise = "Reset and Step write all of their leaves: step 0, lane 0",
       .unwritten = "next/observation"},
      {.name = "ResetNeverWritesALeaf",
       .promise = "Reset and Step write all of their leaves: step 0, lane 0",
       .unwritten = "observation"},
  };
}

std::vector<Fault> StepFaults() {
  return {
      {.name = "ObservationOutside",
       .promise = "values are inside their specs",
       .step = AfterStep<float>("next/observation", [](float* x) { *x = 11; })},
      {.name = "ObservationNan",
       .promise = "values are inside their specs",
       .step = AfterStep<float>(
           "next/observation",
           [](float* x) { *x = std::numeric_limits<float>::quiet_NaN(); })},
      {.name = "RewardInfinite",
       .promise = "rewards are finite",
       .step = AfterStep<float>(
           "next/reward",
           [](float* x) { *x = std::numeric_limits<float>::infinity(); })},
      {.name = "DoneAlone",
       .promise = "done = terminated | truncated",
       .step = AfterStep<bool>("next/done", [](bool* x) { *x = !*x; })},
      {.name = "WritesRoot",
       .promise = "Step writes below next only",
       .step = AfterStep<float>("observation", [](float* x) { *x += 1; })},
      {.name = "WritesAction",
       .promise = "Step writes below next only",
       .step = AfterStep<int64_t>("action", [](int64_t* x) { *x = 2 - *x; })},
      {.name = "NotRepeatable",
       .promise = "equal seeds give equal episodes",
       .step = [calls = 0](Env& env) mutable -> absl::Status {
         RILL_RETURN_IF_ERROR(env.Step());
         RILL_ASSIGN_OR_RETURN(auto r, env.step().Flat<float>("next/reward"));
         r[2] = static_cast<float>(++calls);
         return absl::OkStatus();
       }},
  };
}

// Puts legal actions in the place of wrong ones.
void MakeLegal(const Env& env) {
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    int64_t& value = Actions(env)[lane];
    if (value < 0 || value > 2) value = 0;
  }
}

std::vector<Fault> RefusalFaults() {
  return {
      {.name = "TakesAnyAction",
       .promise = "wrong actions are INVALID_ARGUMENT",
       .step =
           [](Env& env) {
             MakeLegal(env);
             return env.Step();
           }},
      {.name = "WrongCodeForAction",
       .promise = "wrong actions are INVALID_ARGUMENT",
       .step =
           [](Env& env) {
             const int64_t action = Actions(env)[2];
             if (action >= 0 && action <= 2) return env.Step();
             return absl::OutOfRangeError("lane 2");
           }},
      {.name = "FinishedLaneComesBeforeWrongAction",
       .promise = "also where another lane is finished",
       .step = [](Env& env) -> absl::Status {
         RILL_ASSIGN_OR_RETURN(const TensorDict state, env.SaveState());
         TensorDict step = env.step();
         RILL_ASSIGN_OR_RETURN(const TensorDict before, step.Clone());
         MakeLegal(env);
         const absl::Status status = env.Step();
         RILL_RETURN_IF_ERROR(step.CopyFrom(before));
         if (absl::IsFailedPrecondition(status)) return status;
         RILL_RETURN_IF_ERROR(env.LoadState(state));
         return env.Step();
       }},
      {.name = "MovesBeforeItRefuses",
       .promise = "refused actions move no lane",
       .step = [](Env& env) -> absl::Status {
         absl::Status status = env.Step();
         if (!absl::IsInvalidArgument(status)) return status;
         RILL_ASSIGN_OR_RETURN(TensorDict state, env.SaveState());
         RILL_ASSIGN_OR_RETURN(auto steps, state.Flat<int64_t>("steps"));
         ++steps[0];
         RILL_RETURN_IF_ERROR(env.LoadState(state));
         return status;
       }},
      {.name = "StepsFinishedLanes",
       .promise = "steps of finished lanes are FAILED_PRECONDITION",
       .step =
           [](Env& env) {
             const absl::Status status = env.Step();
             return absl::IsFailedPrecondition(status) ? absl::OkStatus()
                                                       : status;
           }},
      {.name = "FinishedLaneScribbles",
       .promise = "refused steps move no lane",
       .step = [](Env& env) -> absl::Status {
         const absl::Status status = env.Step();
         if (!absl::IsFailedPrecondition(status)) return status;
         RILL_ASSIGN_OR_RETURN(auto x,
                               env.step().Flat<float>("next/observation"));
         for (float& value : x) value = 9;
         return status;
       }},
  };
}

std::vector<Fault> StateFaults() {
  return {
      {.name = "LoadTakesAnything",
       .promise = "LoadState refuses what SaveState did not write",
       .load =
           [](Env& env, const TensorDict& state) {
             return state.empty() ? absl::OkStatus() : env.LoadState(state);
           }},
      {.name = "LoadForgets",
       .promise = "LoadState goes on where SaveState was",
       .load = [](Env& env, const TensorDict& state) -> absl::Status {
         RILL_ASSIGN_OR_RETURN(TensorDict copy, state.Clone());
         if (!copy.empty()) {
           RILL_ASSIGN_OR_RETURN(auto steps, copy.Flat<int64_t>("steps"));
           steps[1] = 0;
         }
         return env.LoadState(copy);
       }},
      {.name = "SaveFails",
       .promise = "correct calls succeed",
       .save = [](const Env&) -> absl::StatusOr<TensorDict> {
         return absl::InternalError("no");
       }},
      {.name = "SaveMoves",
       .promise = "SaveState changes nothing",
       .save = [](const Env& env) -> absl::StatusOr<TensorDict> {
         RILL_ASSIGN_OR_RETURN(TensorDict state, env.SaveState());
         RILL_ASSIGN_OR_RETURN(TensorDict moved, state.Clone());
         RILL_ASSIGN_OR_RETURN(auto steps, moved.Flat<int64_t>("steps"));
         for (int64_t& value : steps) value = 0;
         RILL_RETURN_IF_ERROR(const_cast<Env&>(env).LoadState(moved));
         return state;
       }},
  };
}

class EnvCheckerFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(EnvCheckerFaultTest, IsFoundAndNamed) {
  EXPECT_THAT(Check(GetParam()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("CheckEnv: \"Broken\": "),
                             HasSubstr(GetParam().promise))));
}

std::string FaultName(const testing::TestParamInfo<Fault>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Reset, EnvCheckerFaultTest,
                         testing::ValuesIn(ResetFaults()), FaultName);
INSTANTIATE_TEST_SUITE_P(Step, EnvCheckerFaultTest,
                         testing::ValuesIn(StepFaults()), FaultName);
INSTANTIATE_TEST_SUITE_P(Unseen, EnvCheckerFaultTest,
                         testing::ValuesIn(UnseenFaults()), FaultName);
INSTANTIATE_TEST_SUITE_P(Refusal, EnvCheckerFaultTest,
                         testing::ValuesIn(RefusalFaults()), FaultName);
INSTANTIATE_TEST_SUITE_P(State, EnvCheckerFaultTest,
                         testing::ValuesIn(StateFaults()), FaultName);

TEST(EnvCheckerTest, TheSameEnvWithoutAFaultPasses) {
  RILL_EXPECT_OK(Check({}));
}

TEST(EnvCheckerTest, AnEnvThatCannotSavePasses) {
  RILL_EXPECT_OK(Check({.save = [](const Env&) -> absl::StatusOr<TensorDict> {
    return absl::UnimplementedError("no");
  }}));
}

TEST(EnvCheckerTest, SaysLaneAndStep) {
  Fault fault = StepFaults()[3];
  EXPECT_THAT(Check(fault), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("step 0, lane 1")));
}

TEST(EnvCheckerTest, LeavesTheEnvReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  RILL_ASSERT_OK(CheckEnv(*env));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, env->SaveState());
  EXPECT_EQ(*state.Find("steps")->Item<int64_t>(), 0);
}

TEST(EnvCheckerTest, RefusesNoSteps) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  EXPECT_THAT(CheckEnv(*env, {.steps = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("steps: got 0, want >= 1")));
}

}  // namespace
}  // namespace rill
