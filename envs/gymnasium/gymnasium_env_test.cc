// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/gymnasium_env.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// With the stand-in for gymnasium in testdata.
absl::StatusOr<std::unique_ptr<Env>> Fake(GymnasiumEnvOptions options) {
  options.python_path = {absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                                      std::getenv("TEST_WORKSPACE"),
                                      "/envs/gymnasium/testdata")};
  return MakeGymnasiumEnv(options);
}

// Steps until a call fails, three times at most.
absl::Status ThreeSteps(Env& env) {
  for (int t = 0; t < 3; ++t) {
    if (absl::Status status = env.Step(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

INSTANTIATE_TEST_SUITE_P(
    Gymnasium, EnvConformanceTest,
    ::testing::Values(
        [] {
          return Fake({.id = "Count-v0",
                       .lanes = 3,
                       .children = 2,
                       .kwargs = R"({"end": 20})"});
        },
        [] { return Fake({.id = "Nested-v0", .lanes = 3, .children = 2}); }));

TEST(GymnasiumEnvTest, ActionsGetTheStartOfTheirSpace) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Fake({.id = "Count-v0", .lanes = 2}));
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
      auto env, Fake({.id = "Count-v0",
                      .lanes = 3,
                      .children = 2,
                      .kwargs = absl::StrCat(R"({"fault": ")", fault.name,
                                             R"(", "lanes": [1]})"),
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
        Fault{"hang", {false, true, true}, "no answer in time"},
        Fault{"raise", {false, false, true}, "ValueError: no such step"},
        Fault{"shape", {false, false, true}, "got shape (3,), want (2,)"},
        Fault{"nan", {false, false, true}, "reward: got nan"}),
    [](const auto& info) { return info.param.name; });

TEST(GymnasiumEnvTest, OutputThatFillsPipesDoesNotStopAChild) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, Fake({.id = "Count-v0", .kwargs = R"({"fault": "garbage"})"}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  for (int t = 0; t < 10; ++t) RILL_ASSERT_OK(env->Step());
}

TEST(GymnasiumEnvTest, SaysWhyAnEnvironmentCannotBeMade) {
  EXPECT_THAT(Fake({.id = "Count-v0", .kwargs = R"({"fault": "make"})"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RuntimeError: cannot make it")));
  EXPECT_THAT(Fake({.id = "Words-v0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("observation/words: space Text, want Box")));
  EXPECT_THAT(
      Fake({.id = "Count-v0", .lanes = 1, .children = 2}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("children")));
  EXPECT_THAT(Fake({.id = "Count-v0", .python = "no_such_python"}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cannot run \"no_such_python\"")));
}

TEST(GymnasiumEnvTest, FailedResetLeavesOtherLanesAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, Fake({.id = "Count-v0",
                      .lanes = 2,
                      .kwargs = R"({"fault": "reset", "lanes": [1]})"}));
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{1, 1}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("lane 1: RuntimeError: cannot reset"),
                             Not(HasSubstr("lane 0")))));
}

TEST(GymnasiumEnvTest, LanesAndEpisodesHaveSeedsOfTheirOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, Fake({.id = "Count-v0", .lanes = 3, .children = 2}));
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
      auto env, Fake({.id = "Count-v0", .kwargs = R"({"fault": "loud"})"}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  const absl::Status status = ThreeSteps(*env);
  EXPECT_THAT(status.message(), HasSubstr("the end"));
  EXPECT_LT(status.message().size(), 3000);
}

// With the real Gymnasium, below RILL_GYMNASIUM_PATH.
TEST(GymnasiumEnvTest, Example) {
  const char* const path = std::getenv("RILL_GYMNASIUM_PATH");
  if (path == nullptr) {
    GTEST_SKIP() << "RILL_GYMNASIUM_PATH is not set: a pip --target folder "
                    "with gymnasium, passed by --test_env";
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeGymnasiumEnv({.id = "CartPole-v1",
                                              .lanes = 8,
                                              .children = 2,
                                              .python_path = {path}}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(8, 1)));
  for (int t = 0; t < 5; ++t) RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  EXPECT_THAT(reward, ::testing::Each(1.0f));
}

}  // namespace
}  // namespace rill
