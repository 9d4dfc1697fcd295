// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/time_limit.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/step_mdp.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Made = absl::StatusOr<std::unique_ptr<Env>>;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

Made LimitCartPole(int64_t lanes, int64_t max_steps) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = lanes}));
  return MakeTimeLimit(std::move(env), {.max_steps = max_steps});
}

Made LimitCounting(const CountingEnvOptions& options, int64_t max_steps) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeCountingEnv(options));
  return MakeTimeLimit(std::move(env), {.max_steps = max_steps});
}

Made LimitTwoAgents(const TwoAgentsEnvOptions& options, int64_t max_steps) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeTwoAgentsEnv(options));
  return MakeTimeLimit(std::move(env), {.max_steps = max_steps});
}

TEST(TimeLimitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 16}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeTimeLimit(std::move(cart_pole), {.max_steps = 100}));
  EXPECT_EQ(env->name(), "CartPole-v1");
}

TEST(TimeLimitTest, EachLaneIsTruncatedAtItsOwnLimit) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, LimitCounting({.lanes = 2, .episode_steps = 100}, 3));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(StepMdp(&step));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1}));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<bool>("next/done"), IsOkAndHolds(Each(false)));
  RILL_ASSERT_OK(StepMdp(&step));
  RILL_ASSERT_OK(env->Step());
  for (const char* key : {"next/done", "next/truncated"}) {
    EXPECT_THAT(step.Flat<bool>(key), IsOkAndHolds(ElementsAre(true, false)));
  }
  EXPECT_THAT(step.Flat<bool>("next/terminated"), IsOkAndHolds(Each(false)));
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(3, 2)));
}

TEST(TimeLimitTest, TerminatedStaysAtTheLimit) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      LimitCounting({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}, 2));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(env->step().Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(true, false)));
  EXPECT_THAT(env->step().Flat<bool>("next/truncated"),
              IsOkAndHolds(Each(true)));
}

TEST(TimeLimitTest, GroupsAreCutOffWithTheirLane) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      LimitTwoAgents({.lanes = 2, .episode_steps = 9, .guard_steps = 9}, 2));
  const TensorDict& step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  RILL_ASSERT_OK(env->Step());
  for (const char* flag : {"done", "truncated"}) {
    EXPECT_THAT(step.Flat<bool>(absl::StrCat("next/agents/", flag)),
                IsOkAndHolds(ElementsAre(false, false, true, true)));
    EXPECT_THAT(step.Flat<bool>(absl::StrCat("next/guard/", flag)),
                IsOkAndHolds(ElementsAre(false, true)));
  }
  for (const char* group : {"agents", "guard"}) {
    EXPECT_THAT(step.Flat<bool>(absl::StrCat("next/", group, "/terminated")),
                IsOkAndHolds(Each(false)));
  }
}

TEST(TimeLimitTest, TheResetOfAGroupLeavesTheLanesCount) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, LimitTwoAgents({.episode_steps = 9, .guard_steps = 1}, 2));
  const std::vector<uint8_t> yes = {1}, no = {0};
  RILL_ASSERT_OK(env->Reset(yes));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(ResetMask(no, yes)));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(env->step().Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true)));
}

TEST(TimeLimitTest, ALaneAtTheLimitIsNotStepped) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            LimitCounting({.lanes = 2, .episode_steps = 9}, 1));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 1")));
  env->step().Find("action")->data<int64_t>()[0] = 7;
  EXPECT_THAT(env->Step(),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("lane 0"), HasSubstr("got 7"))));
}

// Steps, and says then that a simulator has failed.
class FailingEnv final : public envs_internal::EnvWrapper {
 public:
  FailingEnv(std::unique_ptr<Env> env, absl::Status begin, absl::Status end)
      : EnvWrapper(std::move(env)),
        begin_(std::move(begin)),
        end_(std::move(end)) {}
  absl::Status BeginStep() override {
    RILL_RETURN_IF_ERROR(EnvWrapper::BeginStep());
    return begin_;
  }
  absl::Status EndStep() override { return end_; }

 private:
  const absl::Status begin_, end_;
};

TEST(TimeLimitTest, AStepInWhichASimulatorFailedCountsAndARefusedOneDoesNot) {
  const absl::Status gone = absl::UnavailableError("gone");
  const absl::Status ok;
  for (const auto& [begin, end] : {std::pair(gone, ok), std::pair(ok, gone)}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto counting,
                              MakeCountingEnv({.episode_steps = 9}));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto env, MakeTimeLimit(std::make_unique<FailingEnv>(
                                    std::move(counting), begin, end),
                                {.max_steps = 2}));
    const absl::Span<bool> truncated =
        *env->step().Flat<bool>("next/truncated");
    int64_t* const action = env->step().Find("action")->data<int64_t>();
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
    *action = 7;
    EXPECT_THAT(env->Step(), StatusIs(kInvalidArgument));
    *action = 0;
    EXPECT_EQ(env->Step(), gone);
    EXPECT_FALSE(truncated[0]);
    EXPECT_EQ(env->Step(), gone);
    EXPECT_TRUE(truncated[0]);
  }
}

TEST(TimeLimitTest, ALaneWhoseResetFailedWantsAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counting,
                            MakeCountingEnv({.lanes = 2, .episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeTimeLimit(std::make_unique<FaultyEnv>(
                                  std::move(counting),
                                  FaultyEnv::Options{.fail_reset = 1}),
                              {.max_steps = 3}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{0, 1}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 1")));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1}));
  RILL_EXPECT_OK(env->Step());
}

TEST(TimeLimitTest, TheCountIsInTheState) {
  const CountingEnvOptions counting = {.lanes = 2, .episode_steps = 9};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, LimitCounting(counting, 3));
  RILL_ASSERT_OK_AND_ASSIGN(auto later, LimitCounting(counting, 3));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK(later->LoadState(state));
  RILL_ASSERT_OK(later->Step());
  EXPECT_THAT(later->step().Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
}

TEST(TimeLimitTest, StatesOfOthersAreRefused) {
  const CountingEnvOptions counting = {.lanes = 2, .episode_steps = 9};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, LimitCounting(counting, 2));
  RILL_ASSERT_OK_AND_ASSIGN(auto longer, LimitCounting(counting, 9));
  RILL_ASSERT_OK(longer->Reset(std::vector<uint8_t>{1, 1}));
  for (int t = 0; t < 3; ++t) RILL_ASSERT_OK(longer->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, longer->SaveState());
  EXPECT_THAT(
      env->LoadState(state),
      StatusIs(kFailedPrecondition, AllOf(HasSubstr("steps of lane 0: got 3"),
                                          HasSubstr("want [0, 2]"))));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict without, env->SaveState());
  RILL_ASSERT_OK(without.Delete("env"));
  EXPECT_THAT(env->LoadState(without),
              StatusIs(kFailedPrecondition, HasSubstr("env/state")));
}

TEST(TimeLimitTest, BadOptionsAreNamed) {
  EXPECT_THAT(MakeTimeLimit(nullptr, {.max_steps = 1}).status(),
              StatusIs(kInvalidArgument, HasSubstr("env: got null")));
  EXPECT_THAT(LimitCounting({}, 0).status(),
              StatusIs(kInvalidArgument, HasSubstr("max_steps: got 0")));
}

// CartPole beside itself: one with a limit, and one whose lanes are counted and
// reset here. Resets that nothing asked for are among them.
TEST(TimeLimitTest, AgreesWithCountsBesideTheEnvironment) {
  constexpr int64_t kLanes = 5;
  for (const int64_t max_steps : {1, 2, 13, 40}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto limited, LimitCartPole(kLanes, max_steps));
    RILL_ASSERT_OK_AND_ASSIGN(auto plain, MakeCartPole({.lanes = kLanes}));
    TensorDict got = limited->step(), want = plain->step();
    std::vector<int64_t> counts(kLanes, 0);
    std::vector<uint8_t> mask(kLanes, 1);
    const Rng rng(static_cast<uint64_t>(max_steps));
    for (uint64_t t = 0; t < 300; ++t) {
      RILL_ASSERT_OK(limited->Reset(mask));
      RILL_ASSERT_OK(plain->Reset(mask));
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const int64_t push = rng.UniformInt(t, lane, 2);
        got.Find("action")->data<int64_t>()[lane] = push;
        want.Find("action")->data<int64_t>()[lane] = push;
      }
      RILL_ASSERT_OK(limited->Step());
      RILL_ASSERT_OK(plain->Step());
      RILL_ASSERT_OK_AND_ASSIGN(const auto done, want.Flat<bool>("next/done"));
      RILL_ASSERT_OK_AND_ASSIGN(const auto truncated,
                                want.Flat<bool>("next/truncated"));
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        counts[lane] = mask[lane] != 0 ? 1 : counts[lane] + 1;
        truncated[lane] |= counts[lane] == max_steps;
        done[lane] |= truncated[lane];
        mask[lane] = done[lane] || rng.UniformInt(t, 100 + lane, 10) == 0;
      }
      RILL_ASSERT_OK(got.CheckEqual(want)) << "step " << t;
      RILL_ASSERT_OK(StepMdp(&got));
      RILL_ASSERT_OK(StepMdp(&want));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Limit, EnvConformanceTest,
    ::testing::Values([] { return LimitCartPole(3, 12); },
                      [] {
                        return LimitCounting({.lanes = 3,
                                              .episode_steps = 2,
                                              .stagger_steps = 4,
                                              .ends_truncated = true},
                                             5);
                      },
                      [] {
                        return LimitTwoAgents(
                            {.lanes = 3, .episode_steps = 9, .guard_steps = 2},
                            5);
                      }));

// The limit inside and outside of what else wraps an environment.
INSTANTIATE_TEST_SUITE_P(
    LimitAndOthers, EnvConformanceTest,
    ::testing::Values(
        []() -> Made {
          RILL_ASSIGN_OR_RETURN(auto env, LimitCartPole(3, 7));
          return MakeFrameSkip(std::move(env), {.frame_skip = 3});
        },
        []() -> Made {
          RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = 3}));
          RILL_ASSIGN_OR_RETURN(
              env, MakeFrameSkip(std::move(env), {.frame_skip = 3}));
          return MakeTimeLimit(std::move(env), {.max_steps = 4});
        },
        []() -> Made {
          RILL_ASSIGN_OR_RETURN(auto env, LimitCartPole(3, 20));
          return MakeNoopReset(std::move(env), {.noops = 5});
        },
        []() -> Made {
          RILL_ASSIGN_OR_RETURN(auto env, LimitCartPole(3, 9));
          TransformedEnv::Transforms transforms;
          RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                                StepCounter::Create({}));
          RILL_ASSIGN_OR_RETURN(
              env,
              TransformedEnv::Create(std::move(env), std::move(transforms)));
          return MakeTimeLimit(std::move(env), {.max_steps = 6});
        }));

}  // namespace
}  // namespace rill
