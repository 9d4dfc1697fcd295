// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/rollout_report.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/watch_env/built_in_env.h"

namespace rill::watch_env {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StrEq;

TensorDict RandomRollout(Env& env, int64_t steps) {
  const auto policy = *MakeRandomPolicy(env.spec());
  return *Rollout(env, *policy,
                  {.max_steps = steps, .break_when_any_done = false});
}

void ExpectEpisode(const EpisodeFacts& got, int64_t lane, int64_t steps,
                   double reward, const char* end) {
  EXPECT_EQ(got.lane, lane);
  EXPECT_EQ(got.steps, steps);
  EXPECT_EQ(got.reward, reward);
  EXPECT_THAT(got.end, StrEq(end));
}

TEST(FindEpisodesTest, EpisodesOfEachLaneAndWhatIsLeft) {
  // Rewards of an episode are 1, 2, 3, ...
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 3, .stagger_steps = 1}));
  const TensorDict batch = RandomRollout(*env, 5);
  RILL_ASSERT_OK_AND_ASSIGN(const auto episodes,
                            FindEpisodes(env->spec(), batch));
  ASSERT_THAT(episodes, SizeIs(4));
  ExpectEpisode(episodes[0], 0, 3, 6, "terminated");
  ExpectEpisode(episodes[1], 0, 2, 3, "on");
  ExpectEpisode(episodes[2], 1, 4, 10, "terminated");
  ExpectEpisode(episodes[3], 1, 1, 1, "on");
}

TEST(FindEpisodesTest, ReturnsAreOfAllAgentsOfALane) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeTwoAgentsEnv({.episode_steps = 4}));
  const TensorDict batch = RandomRollout(*env, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                            batch.Flat<int64_t>("agents/action"));
  ASSERT_THAT(actions, SizeIs(8));
  double sum = 0;
  for (const int64_t action : actions) sum += static_cast<double>(action);
  RILL_ASSERT_OK_AND_ASSIGN(const auto episodes,
                            FindEpisodes(env->spec(), batch));
  ASSERT_THAT(episodes, SizeIs(1));
  ExpectEpisode(episodes[0], 0, 4, sum, "terminated");
}

TEST(RolloutReportTest, SaysLeavesFirstRowsAndEpisodes) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeCountingEnv({.episode_steps = 3, .ends_truncated = true}));
  const TensorDict batch = RandomRollout(*env, 6);
  EXPECT_THAT(
      RolloutReport(env->spec(), batch),
      IsOkAndHolds(
          AllOf(HasSubstr("Counting: rollout [lanes, time] = [1, 6]\n"),
                HasSubstr("  observation              float32  [1, 6, 1]      "
                          "0 | 1 | 2 | ...\n"),
                HasSubstr("  next/done                bool     [1, 6, 1]      "
                          "0 | 0 | 1 | ...\n"),
                HasSubstr("     0      3           6  truncated\n"))));
}

TEST(RolloutReportTest, LongListsAreCut) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 1}));
  EXPECT_THAT(RolloutReport(env->spec(), RandomRollout(*env, 25)),
              IsOkAndHolds(HasSubstr("  and 5 more\n")));
}

TEST(BuiltInEnvTest, EachIdMakesItsEnvironmentWithTheSeed) {
  for (const char* id :
       {"CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0",
        "Acrobot-v1", "Pendulum-v1"}) {
    std::vector<TensorDict> first;
    for (const uint64_t seed : {3, 3, 4}) {
      RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeBuiltInEnv(id, seed));
      EXPECT_EQ(env->name(), id);
      RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
      first.push_back(*env->step().Clone());
    }
    RILL_EXPECT_OK(first[1].CheckEqual(first[0]));
    EXPECT_FALSE(first[2].CheckEqual(first[0]).ok());
  }
}

TEST(BuiltInEnvTest, AnUnknownIdListsThoseThereAre) {
  EXPECT_THAT(MakeBuiltInEnv("Cart", 0).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("got \"Cart\""),
                             HasSubstr("CartPole-v1, MountainCar-v0"))));
}

}  // namespace
}  // namespace rill::watch_env
