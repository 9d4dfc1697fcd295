// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/ppo_policy.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/ppo_learner.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 8, kInputs = 3, kSize = 2;

// A learner away from its beginning, its policy, and what both work on.
struct Fixture {
  std::unique_ptr<PpoLearner> learner;
  std::unique_ptr<PpoPolicy> policy;
  TensorDict root{{kLanes}};
  TensorDict step{{kLanes}};
};

Fixture Make(bool is_discrete) {
  Fixture made;
  made.learner = std::make_unique<PpoLearner>(
      PpoLearner::Options{.inputs = kInputs,
                          .kind = {.is_discrete = is_discrete, .size = kSize},
                          .max_batch = kLanes,
                          .seed = 1});
  const Rng rng(2);
  uint64_t draw = 0;
  for (float& p : made.learner->networks().parameters()) {
    p += rng.UniformFloat(draw++, 0) / 4;
  }
  made.policy = std::make_unique<PpoPolicy>(made.learner.get(), /*seed=*/3);
  Tensor observation = *Tensor::Zeros(DType::kFloat32, {kLanes, kInputs});
  const absl::Span<float> elements = *observation.Flat<float>();
  for (float& x : elements) {
    x = 2 * rng.UniformFloat(draw++, 0) - 1;
  }
  RILL_EXPECT_OK(made.root.Set("observation", observation));
  RILL_EXPECT_OK(made.step.Set(
      "action", is_discrete
                    ? *Tensor::Zeros(DType::kInt64, {kLanes})
                    : *Tensor::Zeros(DType::kFloat32, {kLanes, kSize})));
  if (!is_discrete) {
    RILL_EXPECT_OK(made.step.Set(
        "drawn_action", *Tensor::Zeros(DType::kFloat32, {kLanes, kSize})));
  }
  for (const char* key : {"log_prob", "state_value"}) {
    RILL_EXPECT_OK(
        made.step.Set(key, *Tensor::Zeros(DType::kFloat32, {kLanes, 1})));
  }
  return made;
}

template <typename T>
std::vector<T> Values(const TensorDict& dict, const char* key) {
  const absl::Span<T> flat = *dict.Flat<T>(key);
  return {flat.begin(), flat.end()};
}

PolicySubject Subject(bool is_discrete) {
  auto made = std::make_shared<Fixture>(Make(is_discrete));
  return {.policy = std::shared_ptr<Policy>(made, made->policy.get()),
          .root = made->root,
          .action = is_discrete
                        ? LeafSpec::Categorical(kSize)
                        : LeafSpec::Bounded(DType::kFloat32, {kSize}, -1, 1)};
}

INSTANTIATE_TEST_SUITE_P(Ppo, PolicyConformanceTest,
                         ::testing::Values([] { return Subject(true); },
                                           [] { return Subject(false); }));

TEST(PpoPolicyTest, LogProbAndValueAreThoseOfTheNetworks) {
  for (bool is_discrete : {true, false}) {
    Fixture made = Make(is_discrete);
    EXPECT_THAT(made.policy->Act(made.root, {.step = 5}, &made.step),
                IsOkAndHolds(0));
    ActorCritic<float>& networks = made.learner->networks();
    const auto observation = Values<float>(made.root, "observation");
    std::vector<float> heads(kLanes * kSize), values(kLanes);
    networks.Act(observation, absl::MakeSpan(heads));
    networks.Values(observation, absl::MakeSpan(values));
    EXPECT_THAT(Values<float>(made.step, "state_value"),
                ElementsAreArray(values));
    const auto log_prob = Values<float>(made.step, "log_prob");
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      std::vector<float> action;
      if (is_discrete) {
        action = {
            static_cast<float>(Values<int64_t>(made.step, "action")[lane])};
      } else {
        const auto all = Values<float>(made.step, "drawn_action");
        action = {all[lane * kSize], all[lane * kSize + 1]};
      }
      const auto head = absl::MakeConstSpan(heads).subspan(lane * kSize, kSize);
      EXPECT_FLOAT_EQ(log_prob[lane],
                      EvaluateAction<float>(networks.kind(), head,
                                            networks.log_std(), action)
                          .log_prob);
    }
  }
}

TEST(PpoPolicyTest, DrawsFollowTheStepAndStopWithoutExploration) {
  Fixture made = Make(/*is_discrete=*/false);
  const auto act = [&](const ActContext& context) {
    EXPECT_THAT(made.policy->Act(made.root, context, &made.step), IsOk());
    return Values<float>(made.step, "drawn_action");
  };
  const auto first = act({.step = 1});
  EXPECT_NE(act({.step = 2}), first);
  EXPECT_EQ(act({.step = 1}), first);
  std::vector<float> means(kLanes * kSize);
  made.learner->networks().Act(Values<float>(made.root, "observation"),
                               absl::MakeSpan(means));
  EXPECT_THAT(act({.step = 1, .explore = false}), ElementsAreArray(means));
}

TEST(PpoPolicyTest, TheEnvironmentGetsActionsWithinTheirBounds) {
  Fixture made = Make(/*is_discrete=*/false);
  EXPECT_THAT(made.policy->Act(made.root, {}, &made.step), IsOk());
  const auto drawn = Values<float>(made.step, "drawn_action");
  EXPECT_THAT(drawn, Contains(Gt(1)));
  const auto action = Values<float>(made.step, "action");
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(action[i], std::clamp(drawn[i], -1.f, 1.f));
  }
}

TEST(PpoPolicyTest, ObservationsOfAnotherSizeAreRefused) {
  Fixture made = Make(true);
  RILL_ASSERT_OK(made.root.Set(
      "observation", *Tensor::Zeros(DType::kFloat32, {kLanes, kInputs + 1})));
  EXPECT_THAT(made.policy->Act(made.root, {}, &made.step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"observation\": got 32 values, want 3")));
}

}  // namespace
}  // namespace rill::ppo
