// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/pipeline.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;

Config SmallConfig() {
  Config config;
  config.lanes = 4;
  config.frames_per_batch = 64;
  config.init_random_frames = 64;
  config.capacity = 400;
  config.batch_size = 16;
  return config;
}

TEST(PipelineTest, CollectedStepsReachTheLearner) {
  const Config config = SmallConfig();
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline pipeline, MakePipeline(config));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(pipeline.collector->CollectInto(*pipeline.replay));
  }
  EXPECT_EQ(pipeline.collector->frames(), 192);
  EXPECT_EQ(pipeline.replay->size(), 192);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict sample, pipeline.replay->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<float> reward,
                            sample.Flat<float>("next/reward"));
  EXPECT_THAT(reward, Each(FloatEq(config.reward_scale)));
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<float> sum,
                            sample.Flat<float>("next/episode_reward"));
  EXPECT_THAT(sum, Each(::testing::Ge(1.0f)));  // Not scaled.
  RILL_ASSERT_OK_AND_ASSIGN(DoubleDqn::UpdateStats stats,
                            LearnFrom(sample, 1e-3, pipeline.learner.get()));
  EXPECT_GT(stats.gradient_norm, 0);
  EXPECT_EQ(pipeline.learner->adam().step_count(), 1);
}

TEST(PipelineTest, EqualSeedsMakeEqualLearners) {
  Config config = SmallConfig();
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline a, MakePipeline(config));
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline b, MakePipeline(config));
  config.seed = 1;
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline c, MakePipeline(config));
  EXPECT_THAT(a.learner->online_parameters(),
              ElementsAreArray(b.learner->online_parameters()));
  EXPECT_THAT(a.learner->online_parameters(),
              Not(ElementsAreArray(c.learner->online_parameters())));
}

TEST(PipelineTest, LearnerRoundTrips) {
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline from, MakePipeline(SmallConfig()));
  RILL_ASSERT_OK(from.collector->CollectInto(*from.replay));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict sample, from.replay->Sample());
  RILL_ASSERT_OK(LearnFrom(sample, 1e-3, from.learner.get()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, SaveLearner(*from.learner));
  DoubleDqn to(16, {});
  RILL_ASSERT_OK(LoadLearner(state, &to));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict again, SaveLearner(to));
  EXPECT_THAT(again.CheckEqual(state), IsOk());
  EXPECT_EQ(to.adam().step_count(), 1);
}

TEST(PipelineTest, BrokenLearnerStateIsRefusedWhole) {
  DoubleDqn learner(16, {});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict before, SaveLearner(learner));
  DoubleDqn other(16, {});
  other.online_parameters()[0] = 1;
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, SaveLearner(other));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor moment, state.Get("second_moment"));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor shorter, moment.Slice(0, 0, 7));
  RILL_ASSERT_OK(state.Set("second_moment", shorter));
  EXPECT_THAT(LoadLearner(state, &learner),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("\"second_moment\" has 7 values, want")));
  RILL_ASSERT_OK(state.Delete("target"));
  EXPECT_THAT(LoadLearner(state, &learner),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("target")));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict after, SaveLearner(learner));
  EXPECT_THAT(after.CheckEqual(before), IsOk());
}

TEST(PipelineTest, ForeignActionsAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline pipeline, MakePipeline(SmallConfig()));
  RILL_ASSERT_OK(pipeline.collector->CollectInto(*pipeline.replay));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict sample, pipeline.replay->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<int64_t> action,
                            sample.Flat<int64_t>("action"));
  action[3] = 2;
  EXPECT_THAT(LearnFrom(sample, 1e-3, pipeline.learner.get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("action is 2, want [0, 2)")));
}

}  // namespace
}  // namespace rill::dqn_cartpole
