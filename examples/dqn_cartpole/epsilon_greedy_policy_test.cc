// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 1024;

class EpsilonGreedyPolicyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Rng rng(3);
    std::vector<double> uniforms(DoubleDqn::kParameters);
    for (size_t i = 0; i < uniforms.size(); ++i) {
      uniforms[i] = rng.UniformDouble(i, 0);
    }
    learner_.Initialize(uniforms);
    RILL_ASSERT_OK_AND_ASSIGN(Tensor observation,
                              Tensor::Zeros(DType::kFloat32, {kLanes, 4}));
    for (int64_t i = 0; i < kLanes * 4; ++i) {
      observation.data<float>()[i] = 2 * rng.UniformFloat(i, 1) - 1;
    }
    RILL_ASSERT_OK(root_.Set("observation", observation));
    RILL_ASSERT_OK_AND_ASSIGN(action_, Tensor::Zeros(DType::kInt64, {kLanes}));
    RILL_ASSERT_OK(step_.Set("action", action_));
    RILL_ASSERT_OK(ActGreedily(learner_, root_, &action_));
    greedy_ = Actions();
  }

  std::vector<int64_t> Actions() {
    return {action_.data<int64_t>(), action_.data<int64_t>() + kLanes};
  }

  DoubleDqn learner_{kLanes, {}};
  TensorDict root_{{kLanes}};
  TensorDict step_{{kLanes}};
  Tensor action_;
  std::vector<int64_t> greedy_;
};

TEST_F(EpsilonGreedyPolicyTest, EpsilonFallsInAStraightLineAndStays) {
  const EpsilonGreedyPolicy policy(
      &learner_, {.epsilon_frames = 100, .final_epsilon = 0.2});
  EXPECT_DOUBLE_EQ(policy.EpsilonAt(0), 1);
  EXPECT_DOUBLE_EQ(policy.EpsilonAt(50), 0.6);
  EXPECT_DOUBLE_EQ(policy.EpsilonAt(100), 0.2);
  EXPECT_DOUBLE_EQ(policy.EpsilonAt(1'000'000), 0.2);
}

TEST_F(EpsilonGreedyPolicyTest, WithoutEpsilonItIsGreedy) {
  EpsilonGreedyPolicy policy(&learner_, {.final_epsilon = 0});
  RILL_ASSERT_OK(policy.Act(root_, {.frames = 1}, &step_).status());
  EXPECT_EQ(Actions(), greedy_);
}

TEST_F(EpsilonGreedyPolicyTest, WithoutExplorationItIsGreedy) {
  EpsilonGreedyPolicy policy(&learner_, {.final_epsilon = 1});
  RILL_ASSERT_OK(policy.Act(root_, {.explore = false}, &step_).status());
  EXPECT_EQ(Actions(), greedy_);
}

TEST_F(EpsilonGreedyPolicyTest, HalfOfTheRandomActionsDifferFromTheGreedy) {
  // Each lane differs with probability epsilon / 2 = 0.25. Six standard
  // deviations are a false alarm in 5e8 seeds, and the seed is fixed.
  EpsilonGreedyPolicy policy(&learner_, {.seed = 5, .final_epsilon = 0.5});
  int64_t different = 0;
  constexpr int64_t kSteps = 20;
  for (int64_t step = 0; step < kSteps; ++step) {
    RILL_ASSERT_OK(
        policy.Act(root_, {.frames = 1, .step = step}, &step_).status());
    const std::vector<int64_t> actions = Actions();
    for (int64_t i = 0; i < kLanes; ++i) different += actions[i] != greedy_[i];
  }
  const double n = kSteps * kLanes;
  EXPECT_NEAR(different, n / 4, 6 * std::sqrt(n * 3 / 16));
}

TEST_F(EpsilonGreedyPolicyTest, ActionsAreAFunctionOfSeedAndStep) {
  const EpsilonGreedyPolicy::Options options = {.seed = 5, .final_epsilon = 1};
  EpsilonGreedyPolicy a(&learner_, options), b(&learner_, options);
  EpsilonGreedyPolicy other(&learner_, {.seed = 6, .final_epsilon = 1});
  RILL_ASSERT_OK(a.Act(root_, {.step = 8}, &step_).status());
  const std::vector<int64_t> first = Actions();
  RILL_ASSERT_OK(a.Act(root_, {.step = 9}, &step_).status());
  EXPECT_NE(Actions(), first);
  RILL_ASSERT_OK(b.Act(root_, {.step = 8}, &step_).status());
  EXPECT_EQ(Actions(), first);
  RILL_ASSERT_OK(other.Act(root_, {.step = 8}, &step_).status());
  EXPECT_NE(Actions(), first);
}

TEST_F(EpsilonGreedyPolicyTest, LeavesThatDoNotFitAreRefused) {
  EpsilonGreedyPolicy policy(&learner_, {});
  TensorDict few({3});
  RILL_ASSERT_OK(few.Set("action", *Tensor::Zeros(DType::kInt64, {3})));
  EXPECT_THAT(policy.Act(root_, {}, &few),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("4096 values, want 4 for each of 3")));
  EXPECT_THAT(policy.Act(TensorDict({kLanes}), {}, &step_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("observation")));
}

PolicySubject EpsilonGreedy() {
  struct Both {
    DoubleDqn learner{kLanes, {}};
    EpsilonGreedyPolicy policy{&learner,
                               {.epsilon_frames = 100, .final_epsilon = 0.5}};
  };
  const auto both = std::make_shared<Both>();
  PolicySubject subject = {.policy = {both, &both->policy},
                           .root = TensorDict({kLanes}),
                           .action = LeafSpec::Categorical(2)};
  RILL_EXPECT_OK(subject.root.Set(
      "observation", *LeafSpec::Unbounded(DType::kFloat32, {4})
                          .Random({kLanes}, Rng(1, RngStream::kUser), 0)));
  return subject;
}
INSTANTIATE_TEST_SUITE_P(EpsilonGreedy, PolicyConformanceTest,
                         ::testing::Values(EpsilonGreedy));

}  // namespace
}  // namespace rill::dqn_cartpole
