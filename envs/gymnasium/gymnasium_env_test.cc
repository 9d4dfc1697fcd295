// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/gymnasium_env.h"

#include <sched.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/testing/fake_gymnasium.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const auto* const kNeedsNumpy =
    ::testing::AddGlobalTestEnvironment(new NeedsNumpy());

// Steps until a call fails, three times at most.
absl::Status ThreeSteps(Env& env) {
  for (int t = 0; t < 3; ++t) {
    if (absl::Status status = env.Step(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

INSTANTIATE_TEST_SUITE_P(Gymnasium, EnvConformanceTest,
                         ::testing::Values(
                             [] {
                               return MakeFakeGymnasiumEnv(
                                   {.id = "Count-v0",
                                    .lanes = 3,
                                    .children = 2,
                                    .kwargs = R"({"end": 20})"});
                             },
                             [] {
                               return MakeFakeGymnasiumEnv({.id = "Nested-v0",
                                                            .lanes = 3,
                                                            .children = 2});
                             }));

TEST(GymnasiumEnvTest, ActionsGetTheStartOfTheirSpace) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeFakeGymnasiumEnv({.id = "Count-v0", .lanes = 2}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env->step().Flat<int64_t>("action"));
  action[1] = 2;
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(auto next,
                            env->step().Flat<float>("next/observation"));
  EXPECT_EQ(next[1], 5);
  EXPECT_EQ(next[3], 7);
}

// Each fault fails its lane, or the lanes of its child, and nothing else; a
// reset goes on.
struct Fault {
  std::string name;
  std::vector<bool> done;
  std::string reason;
};
class GymnasiumFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(GymnasiumFaultTest, FailsItsLanesAlone) {
  const Fault& fault = GetParam();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv({.id = "Count-v0",
                            .lanes = 3,
                            .children = 2,
                            .kwargs = absl::StrCat(R"({"faults": {"2": ")",
                                                   fault.name, R"("}})"),
                            .step_timeout = absl::Seconds(5)}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  const absl::Status status = ThreeSteps(*env);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("lane 2: "), HasSubstr(fault.reason)));
  RILL_ASSERT_OK_AND_ASSIGN(auto done, env->step().Flat<bool>("next/done"));
  RILL_ASSERT_OK_AND_ASSIGN(auto truncated,
                            env->step().Flat<bool>("next/truncated"));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  EXPECT_EQ(std::vector<bool>(done.begin(), done.end()), fault.done);
  EXPECT_EQ(std::vector<bool>(truncated.begin(), truncated.end()), fault.done);
  EXPECT_THAT(reward, ElementsAre(3, fault.done[1] ? 0 : 3, 0));
  EXPECT_EQ(env->Step().code(), absl::StatusCode::kFailedPrecondition);
  std::vector<uint8_t> mask(fault.done.begin(), fault.done.end());
  RILL_ASSERT_OK(env->Reset(mask));
  RILL_EXPECT_OK(env->Step());
}

// Children hold lane 0 and lanes 1, 2; the fault is in the second of a child.
INSTANTIATE_TEST_SUITE_P(
    Faults, GymnasiumFaultTest,
    ::testing::Values(
        Fault{"exit",
              {false, true, true},
              "exit status 7; its last output: the last words"},
        Fault{"signal", {false, true, true}, "ended by signal 11"},
        Fault{"write", {false, true, true}, "wrote to descriptor 3"},
        Fault{"hang", {false, true, true}, "no answer in time"},
        Fault{"raise", {false, false, true}, "ValueError: no such step"},
        Fault{"shape", {false, false, true}, "got shape (3,), want (2,)"},
        Fault{"nan", {false, false, true}, "reward: got nan"}),
    [](const auto& info) { return info.param.name; });

// Children hold lanes 0, 1 and lanes 2, 3.
TEST(GymnasiumEnvTest, AnErrorNamesAllLanesThatFailedAndHasTheFirstOnesCode) {
  const auto fail = [](const char* faults) -> absl::Status {
    auto env = MakeFakeGymnasiumEnv({.id = "Count-v0",
                                     .lanes = 4,
                                     .children = 2,
                                     .kwargs = faults,
                                     .step_timeout = absl::Seconds(5)});
    RILL_RETURN_IF_ERROR(env.status());
    RILL_RETURN_IF_ERROR((*env)->Reset(std::vector<uint8_t>(4, 1)));
    return ThreeSteps(**env);
  };
  EXPECT_THAT(
      fail(R"({"faults": {"0": "nan", "1": "raise", "3": "exit"}})"),
      StatusIs(absl::StatusCode::kInternal,
               AllOf(HasSubstr("lane 0: reward: got nan"),
                     HasSubstr("lane 1: ValueError: no such step"),
                     HasSubstr("lane 2: child ended with exit status 7"),
                     HasSubstr("lane 3: child ended with exit status 7"))));
  EXPECT_THAT(fail(R"({"faults": {"1": "exit", "2": "hang"}})"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("lane 0: child ended with exit"),
                             HasSubstr("lane 1: child ended with exit"),
                             HasSubstr("lane 2: child gave no answer in time"),
                             HasSubstr("lane 3: child gave no answer"))));
}

TEST(GymnasiumEnvTest, RefusesCallsBetweenBeginStepAndEndStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeGymnasiumEnv({.id = "Count-v0"}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  RILL_ASSERT_OK(env->BeginStep());
  const auto is_refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("call EndStep first"));
  EXPECT_THAT(env->BeginStep(), is_refused);
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{1}), is_refused);
  EXPECT_THAT(env->Seed(1), is_refused);
  RILL_ASSERT_OK(env->EndStep());
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  EXPECT_THAT(reward, ElementsAre(2));
}

TEST(GymnasiumEnvTest, ChildrenThatAreNotPinnedMayUseAllProcessors) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "wants two processors";
  for (const bool pin : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env,
                              MakeFakeGymnasiumEnv({.id = "Count-v0",
                                                    .lanes = 2,
                                                    .children = 2,
                                                    .pin_children = pin}));
    const std::vector<pid_t> children = ChildProcesses();
    ASSERT_THAT(children, SizeIs(2));
    for (const pid_t child : children) {
      cpu_set_t set;
      ASSERT_EQ(sched_getaffinity(child, sizeof(set), &set), 0);
      EXPECT_EQ(CPU_EQUAL(&set, &all) == 0, pin);
    }
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(2, 1)));
    RILL_EXPECT_OK(env->Step());
  }
}

TEST(GymnasiumEnvTest, OutputThatFillsPipesDoesNotStopAChild) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv(
          {.id = "Count-v0", .kwargs = R"({"faults": {"*": "garbage"}})"}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  for (int t = 0; t < 10; ++t) RILL_ASSERT_OK(env->Step());
}

TEST(GymnasiumEnvTest, SaysWhyAnEnvironmentCannotBeMade) {
  EXPECT_THAT(MakeFakeGymnasiumEnv(
                  {.id = "Count-v0", .kwargs = R"({"faults": {"*": "make"}})"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RuntimeError: cannot make it")));
  EXPECT_THAT(MakeFakeGymnasiumEnv({.id = "Words-v0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("observation/words: space Text, want Box")));
  EXPECT_THAT(
      MakeFakeGymnasiumEnv({.id = "Count-v0", .lanes = 1, .children = 2}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("children")));
  EXPECT_THAT(
      MakeFakeGymnasiumEnv({.id = "Count-v0", .python = "no_such_python"}),
      StatusIs(
          absl::StatusCode::kUnavailable,
          HasSubstr("ChildProcess::Start: \"no_such_python\": No such file")));
}

TEST(GymnasiumEnvTest, FailedResetLeavesOtherLanesAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv({.id = "Count-v0",
                            .lanes = 2,
                            .kwargs = R"({"faults": {"1": "reset"}})"}));
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{1, 1}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("lane 1: RuntimeError: cannot reset"),
                             Not(HasSubstr("lane 0")))));
}

TEST(GymnasiumEnvTest, LanesAndEpisodesHaveSeedsOfTheirOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv({.id = "Count-v0", .lanes = 3, .children = 2}));
  std::set<float> bases;  // A function of the seed, which reset is given.
  for (int episode = 0; episode < 2; ++episode) {
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
    RILL_ASSERT_OK_AND_ASSIGN(const auto observation,
                              env->step().Flat<float>("observation"));
    for (int lane = 0; lane < 3; ++lane) bases.insert(observation[2 * lane]);
  }
  EXPECT_EQ(bases.size(), 6);
}

TEST(GymnasiumEnvTest, AnErrorHasTheEndOfALongOutput) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv(
          {.id = "Count-v0", .kwargs = R"({"faults": {"*": "loud"}})"}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  const absl::Status status = ThreeSteps(*env);
  EXPECT_THAT(status.message(), HasSubstr("the end"));
  EXPECT_LT(status.message().size(), 3000);
}

// The observation that a lane's reset number `episode` shows, as
// gymnasium_env.h has its seed.
float FirstOf(uint64_t seed, int64_t episode, int64_t lane) {
  const Rng rng(seed, RngStream::kEnv);
  return static_cast<float>(
      (rng.Bits64(episode, static_cast<uint32_t>(lane)) >> 33) % 1000);
}

// Lanes that end are reset ahead. Episodes have two steps, and the first
// observation of one shows the number of resets of its lane.
class ResetAheadTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 5;

  void Make(const std::string& fault = "count", int children = 1) {
    RILL_ASSERT_OK_AND_ASSIGN(
        env_, MakeFakeGymnasiumEnv(
                  {.id = "Count-v0",
                   .lanes = 3,
                   .children = children,
                   .kwargs = absl::StrCat(R"({"end": 2, "faults": {"2": ")",
                                          fault, R"(", "*": "count"}})"),
                   .seed = kSeed,
                   .step_timeout = absl::Seconds(5)}));
    RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  }
  // Two steps, with a reset of `early` between: these lanes do not end.
  void StepTwice(const std::vector<uint8_t>& early = {0, 0, 0}) {
    RILL_ASSERT_OK(env_->Step());
    RILL_ASSERT_OK(env_->Reset(early));
    RILL_ASSERT_OK(env_->Step());
  }
  std::vector<float> Values(absl::string_view key) {
    const auto values = env_->step().Flat<float>(key);
    if (!values.ok()) return {};
    return {values->begin(), values->end()};
  }
  std::vector<bool> Flags(absl::string_view key) {
    const auto values = env_->step().Flat<bool>(key);
    if (!values.ok()) return {};
    return std::vector<bool>(values->begin(), values->end());
  }

  std::unique_ptr<Env> env_;
};

TEST_F(ResetAheadTest, TheResetHasTheNextEpisodeAndOneResetIsMade) {
  Make();
  for (int64_t episode = 1; episode < 4; ++episode) {
    StepTwice();
    RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
    const float resets = static_cast<float>(episode + 1);
    EXPECT_THAT(Values("observation"),
                ElementsAre(FirstOf(kSeed, episode, 0), resets,
                            FirstOf(kSeed, episode, 1), resets,
                            FirstOf(kSeed, episode, 2), resets));
    EXPECT_THAT(Flags("done"), ElementsAre(false, false, false));
  }
}

TEST_F(ResetAheadTest, TheLastStepStaysUntilItsLaneIsReset) {
  Make();
  StepTwice();
  const auto root = Values("observation");
  const auto next = Values("next/observation");
  EXPECT_EQ(next[0], FirstOf(kSeed, 0, 0) + 2);
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{0, 0, 1}));
  EXPECT_THAT(
      Values("observation"),
      ElementsAre(root[0], root[1], root[2], root[3], FirstOf(kSeed, 1, 2), 2));
  EXPECT_EQ(Values("next/observation"), next);
  EXPECT_THAT(env_->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("lane 0 is done")));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 0}));
  EXPECT_THAT(Values("observation"),
              ElementsAre(FirstOf(kSeed, 1, 0), 2, FirstOf(kSeed, 1, 1), 2,
                          FirstOf(kSeed, 1, 2), 2));
  RILL_EXPECT_OK(env_->Step());
}

TEST_F(ResetAheadTest, LanesThatHaveNotEndedMayBeginBeforeOrWithIt) {
  Make();
  StepTwice({0, 1, 1});
  EXPECT_THAT(Flags("next/done"), ElementsAre(true, false, false));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{0, 1, 0}));
  EXPECT_THAT(env_->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("lane 0 is done")));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 0, 1}));
  EXPECT_THAT(Values("observation"),
              ElementsAre(FirstOf(kSeed, 1, 0), 2, FirstOf(kSeed, 2, 1), 3,
                          FirstOf(kSeed, 2, 2), 3));
  // A reset ahead is used once.
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(Values("observation")[0], FirstOf(kSeed, 2, 0));
}

TEST_F(ResetAheadTest, ASeedThrowsItAway) {
  Make();
  StepTwice();
  RILL_ASSERT_OK(env_->Seed(9));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_THAT(Values("observation"),
              ElementsAre(FirstOf(9, 0, 0), 3, FirstOf(9, 0, 1), 3,
                          FirstOf(9, 0, 2), 3));
  StepTwice();
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(Values("observation")[0], FirstOf(9, 1, 0));
}

TEST_F(ResetAheadTest, ASeedWhileAllLanesRunHoldsForTheNextOne) {
  Make();
  RILL_ASSERT_OK(env_->Seed(9));
  StepTwice();
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_THAT(Values("observation"),
              ElementsAre(FirstOf(9, 0, 0), 2, FirstOf(9, 0, 1), 2,
                          FirstOf(9, 0, 2), 2));
}

TEST_F(ResetAheadTest, AnExceptionIsAnErrorOfTheResetOfItsLane) {
  Make("again_raise");
  StepTwice();
  EXPECT_THAT(Flags("next/done"), ElementsAre(true, true, true));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 0}));
  EXPECT_THAT(env_->Reset(std::vector<uint8_t>{0, 0, 1}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("Reset: lane 2: ValueError: no such"),
                             Not(HasSubstr("lane 1")))));
  EXPECT_THAT(env_->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("lane 2 is done")));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(Values("observation")[4], FirstOf(kSeed, 2, 2));
  StepTwice();
  RILL_EXPECT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
}

TEST_F(ResetAheadTest, AnExceptionOfOneThatIsThrownAwayIsNoError) {
  Make("again_raise");
  StepTwice();
  RILL_ASSERT_OK(env_->Seed(9));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(Values("observation")[4], FirstOf(9, 0, 2));
  StepTwice();
  RILL_EXPECT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
}

// Children hold lane 0 and lanes 1, 2.
TEST_F(ResetAheadTest, AChildThatEndsOrHangsInItIsAnErrorOfTheReset) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"again_exit", "child ended with exit status 7; its last output: the"},
      {"again_signal", "child ended by signal 11"},
      {"again_write", "child wrote to descriptor 3"},
      {"again_hang", "child gave no answer in time and was killed"}};
  for (const auto& [fault, reason] : faults) {
    SCOPED_TRACE(fault);
    Make(fault, /*children=*/2);
    StepTwice({0, 1, 0});
    EXPECT_THAT(Flags("next/done"), ElementsAre(true, false, true));
    EXPECT_THAT(Values("next/reward"), ElementsAre(2, 1, 2));
    EXPECT_THAT(env_->Reset(std::vector<uint8_t>{1, 0, 1}).message(),
                AllOf(HasSubstr(absl::StrCat("lane 1: ", reason)),
                      HasSubstr(absl::StrCat("lane 2: ", reason)),
                      Not(HasSubstr("lane 0"))));
    EXPECT_EQ(Values("observation")[0], FirstOf(kSeed, 1, 0));
    RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{0, 1, 1}));
    EXPECT_EQ(Values("observation")[4], FirstOf(kSeed, 2, 2));
    RILL_ASSERT_OK(env_->Step());
    EXPECT_THAT(Values("next/reward"), ElementsAre(1, 1, 1));
  }
}

// One child has all lanes: what it says of lane 1 must not be lost with it.
TEST_F(ResetAheadTest, NoneIsMadeWhereALaneFailedInTheStep) {
  RILL_ASSERT_OK_AND_ASSIGN(
      env_,
      MakeFakeGymnasiumEnv(
          {.id = "Count-v0",
           .lanes = 3,
           .kwargs =
               R"({"end": 3, "faults": {"1": "raise", "2": "again_exit"}})",
           .seed = kSeed}));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_THAT(ThreeSteps(*env_),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("lane 1: ValueError: no such step")));
  EXPECT_THAT(Flags("next/done"), ElementsAre(true, true, true));
  EXPECT_THAT(Values("next/reward"), ElementsAre(3, 0, 3));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(Values("observation")[0], FirstOf(kSeed, 1, 0));
}

// The close() of lane 2 says how many children live.
TEST(GymnasiumEnvTest, ChildrenEndTogetherAndCloseTheirEnvironments) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/closed");
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeFakeGymnasiumEnv(
          {.id = "Count-v0",
           .lanes = 3,
           .children = 3,
           .kwargs = absl::StrCat(
               R"({"faults": {"0": "hang", "1": "hang"}, "closed": ")", file,
               R"("})")}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->BeginStep());
  env.reset();
  EXPECT_THAT(ReadFile(file), IsOkAndHolds("3"));
}

}  // namespace
}  // namespace rill
