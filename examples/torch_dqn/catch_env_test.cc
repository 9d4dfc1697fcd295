// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/catch_env.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::torch_dqn {
namespace {

constexpr int64_t kSize = 16;

INSTANTIATE_TEST_SUITE_P(Catch, EnvConformanceTest, ::testing::Values([] {
                           return MakeCatch({.lanes = 3, .size = 6});
                         }));

// Moves the paddle below the place that the ball is expected at, by the frame
// at hand, and by the one before where `sees_velocity`.
class Player final : public Policy {
 public:
  explicit Player(bool sees_velocity) : sees_velocity_(sees_velocity) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext&,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const auto pixels, root.Flat<uint8_t>("pixels"));
    RILL_ASSIGN_OR_RETURN(const auto action, step->Flat<int64_t>("action"));
    last_.resize(action.size());
    for (size_t lane = 0; lane < action.size(); ++lane) {
      const auto frame = pixels.subspan(lane * kSize * kSize, kSize * kSize);
      int64_t paddle = 0;
      while (frame[(kSize - 1) * kSize + paddle] == 0) ++paddle;
      ++paddle;
      int64_t ball = 0;
      while (frame[ball] == 0) ++ball;
      int64_t row = ball / kSize, x = ball % kSize;
      int64_t goal = x;
      if (sees_velocity_ && row > 0 && row < kSize - 1) {
        int64_t velocity = x - last_[lane];
        // Where it came back from a wall it is seen in the next frame.
        for (; row < kSize - 1; ++row) {
          goal += velocity;
          if (goal < 0 || goal >= kSize) {
            goal = goal < 0 ? -goal : 2 * (kSize - 1) - goal;
            velocity = -velocity;
          }
        }
      }
      last_[lane] = x;
      action[lane] = goal < paddle ? 0 : goal == paddle ? 1 : 2;
    }
    return 0;
  }

 private:
  const bool sees_velocity_;
  std::vector<int64_t> last_;
};

TEST(CatchEnvTest, WhoSeesTheVelocityCatchesAlmostAllAndWhoFollowsTheBallFew) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto env,
                            MakeCatch({.lanes = 64, .size = kSize}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const EvaluateResult sees,
      EvaluatePolicy(*env, Player(/*sees_velocity=*/true), {.episodes = 512}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const EvaluateResult follows,
      EvaluatePolicy(*env, Player(/*sees_velocity=*/false), {.episodes = 512}));
  EXPECT_GT(sees.mean_return, 9);
  EXPECT_LT(follows.mean_return, 5);
}

TEST(CatchEnvTest, EpisodesEndWithAMissOrTheLastBall) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto env,
                            MakeCatch({.lanes = 64, .size = kSize}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const EvaluateResult result,
      EvaluatePolicy(*env, Player(/*sees_velocity=*/true), {.episodes = 512}));
  for (size_t i = 0; i < result.returns.size(); ++i) {
    // The last ball lands where it is missed, or where it is the last.
    const double balls = result.returns[i] < kCatchBalls
                             ? result.returns[i] + 1
                             : static_cast<double>(kCatchBalls);
    EXPECT_EQ(result.lengths[i], balls * kSize - 1);
  }
}

}  // namespace
}  // namespace rill::torch_dqn
