// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/exploration.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kLanes = 4096;

EnvSpec Choices() {
  EnvSpec spec;
  EXPECT_TRUE(spec.action.Set("action", LeafSpec::Categorical(4)).ok());
  return spec;
}
TensorDictSpec Forces(double limit) {
  TensorDictSpec spec;
  EXPECT_TRUE(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, {2}, -limit, limit))
          .ok());
  return spec;
}

FunctionPolicy Zero() {
  return FunctionPolicy(
      [](const TensorDict&, Tensor* action) {
        return action->CopyFrom(
            *Tensor::Zeros(action->dtype(), action->shape()));
      },
      /*version=*/9);
}

// Actions of all lanes.
template <typename T>
std::vector<T> Act(Policy& policy, TensorDict* step,
                   const ActContext& context) {
  const absl::StatusOr<int64_t> version = policy.Act({}, context, step);
  RILL_EXPECT_OK(version.status());
  const auto action = step->Flat<T>("action");
  return {action->begin(), action->end()};
}

TEST(ExplorationTest, Example) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto explorer,
      MakeEGreedy(&policy, Choices(), {.annealing_num_steps = 10'000}));
  TensorDict step = *Choices().action.Zero({kLanes});
  EXPECT_THAT(explorer->Act({}, {}, &step), IsOkAndHolds(9));
}

TEST(ExplorationTest, WrappersRefuseActionsOnADevice) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto greedy, MakeEGreedy(&policy, Choices()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step,
                            Choices().action.Zero({2})->To(Device::Fake()));
  const auto refused =
      StatusIs(kInvalid, HasSubstr("leaf \"action\": got one on fake:0, want "
                                   "host memory"));
  EXPECT_THAT(greedy->Act({}, {}, &step), refused);
  RILL_ASSERT_OK_AND_ASSIGN(auto noise,
                            MakeAdditiveGaussian(&policy, Forces(1)));
  RILL_ASSERT_OK_AND_ASSIGN(step, Forces(1).Zero({2})->To(Device::Fake()));
  EXPECT_THAT(noise->Act({}, {}, &step), refused);
}

TEST(RandomPolicyTest, IsTheSameOnADevice) {
  RILL_ASSERT_OK_AND_ASSIGN(auto policy, MakeRandomPolicy(Choices()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict host, Choices().action.Zero({kLanes}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict device, host.To(Device::Fake()));
  RILL_ASSERT_OK(policy->Act({}, {}, &host).status());
  RILL_ASSERT_OK(policy->Act({}, {}, &device).status());
  RILL_EXPECT_OK(device.CheckEqual(host));
}

TEST(RandomPolicyTest, IsUniformInEveryLeafAndDrawsAnewEachStep) {
  EnvSpec spec = Choices();
  RILL_ASSERT_OK(spec.action.Set("other", LeafSpec::Categorical(4)));
  RILL_ASSERT_OK_AND_ASSIGN(auto policy, MakeRandomPolicy(spec, {.seed = 3}));
  TensorDict step = *spec.action.Zero({kLanes});
  std::vector<int64_t> counts(4, 0);
  int64_t equal = 0;
  std::vector<int64_t> last(kLanes, -1);
  int64_t repeated = 0;
  for (int64_t t = 0; t < 10; ++t) {
    const std::vector<int64_t> action =
        Act<int64_t>(*policy, &step, {.step = t});
    const auto other = *step.Flat<int64_t>("other");
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      ++counts[action[lane]];
      equal += action[lane] == other[lane];
      repeated += action[lane] == last[lane];
    }
    last = action;
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(4), 1e-6));
  const double n = 10.0 * kLanes;
  EXPECT_NEAR(equal, n / 4, 6 * std::sqrt(n * 3 / 16));
  EXPECT_NEAR(repeated, n * 0.9 / 4, 6 * std::sqrt(n * 3 / 16));
}

TEST(EGreedyTest, TheShareOfRandomActionsFallsWithTheFrames) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer,
                            MakeEGreedy(&policy, Choices(),
                                        {.eps_init = 0.8,
                                         .eps_end = 0.4,
                                         .annealing_num_steps = 100,
                                         .seed = 2}));
  TensorDict step = *Choices().action.Zero({kLanes});
  const auto share = [&](int64_t frames) {
    int64_t changed = 0;
    for (int64_t t = 0; t < 10; ++t) {
      for (const int64_t action :
           Act<int64_t>(*explorer, &step, {.frames = frames, .step = t})) {
        changed += action != 0;
      }
    }
    return static_cast<double>(changed) / (10.0 * kLanes);
  };
  // Three of four random actions differ from 0.
  EXPECT_NEAR(share(0), 0.8 * 0.75, 0.015);
  EXPECT_NEAR(share(50), 0.6 * 0.75, 0.015);
  EXPECT_NEAR(share(100), 0.4 * 0.75, 0.015);
  EXPECT_NEAR(share(100'000), 0.4 * 0.75, 0.015);
}

TEST(EGreedyTest, RespectsMasks) {
  EnvSpec spec;
  RILL_ASSERT_OK(spec.action.Set(
      "action", *LeafSpec::Categorical(3).WithMask(
                    *Tensor::From<bool>({true, false, true}, {3}))));
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer,
                            MakeEGreedy(&policy, spec, {.eps_end = 1}));
  TensorDict step = *spec.action.Zero({kLanes});
  EXPECT_THAT(Act<int64_t>(*explorer, &step, {}), Each(::testing::AnyOf(0, 2)));
}

TEST(AdditiveGaussianTest, AddsNoiseOfTheMomentsThatWereAskedFor) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer,
                            MakeAdditiveGaussian(&policy, Forces(100),
                                                 {.sigma_init = 2,
                                                  .sigma_end = 1,
                                                  .annealing_num_steps = 10,
                                                  .mean = 0.5,
                                                  .std = 3}));
  TensorDict step = *Forces(100).Zero({kLanes});
  for (const auto& [frames, scale] :
       {std::pair<int64_t, double>{0, 2.0}, {5, 1.5}, {10, 1.0}}) {
    double sum = 0, squares = 0;
    for (const float x :
         Act<float>(*explorer, &step, {.frames = frames, .step = frames})) {
      sum += x;
      squares += double{x} * x;
    }
    const double n = 2.0 * kLanes;
    const double mean = sum / n, std = std::sqrt(squares / n - mean * mean);
    EXPECT_NEAR(mean, 0.5 * scale, 6 * 3 * scale / std::sqrt(n));
    EXPECT_NEAR(std, 3 * scale, 6 * 3 * scale / std::sqrt(2 * n));
  }
}

TEST(AdditiveGaussianTest, ClipsToTheBoundsOfEachElement) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set(
      "action", *LeafSpec::Bounded(*Tensor::From<float>({-1, 0}, {2}),
                                   *Tensor::From<float>({1, 5}, {2}))));
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer,
                            MakeAdditiveGaussian(&policy, spec, {.std = 10}));
  TensorDict step = *spec.Zero({kLanes});
  Act<float>(*explorer, &step, {});
  RILL_EXPECT_OK(spec.CheckValues("T", step));
  const auto action = *step.Flat<float>("action");
  EXPECT_EQ(*std::max_element(action.begin(), action.end()), 5);
  EXPECT_EQ(*std::min_element(action.begin(), action.end()), -1);
}

// The process by its definition, over a few steps.
TEST(OrnsteinUhlenbeckTest, NoiseFollowsTheProcessAndIsCarried) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer,
                            MakeOrnsteinUhlenbeck(&policy, Forces(100),
                                                  {.eps_init = 0.5,
                                                   .eps_end = 0.5,
                                                   .theta = 4,
                                                   .mu = 1,
                                                   .sigma = 0,
                                                   .dt = 0.1}));
  EXPECT_THAT(explorer->output_spec().LeafKeys(),
              ElementsAre("next/action_noise"));
  TensorDict root({1});
  RILL_ASSERT_OK(
      root.Set("action_noise", *Tensor::Zeros(DType::kFloat64, {1, 2})));
  TensorDict step = *Forces(100).Zero({1});
  RILL_ASSERT_OK(
      step.Set("next/action_noise", *Tensor::Zeros(DType::kFloat64, {1, 2})));
  double x = 0;
  for (int64_t t = 0; t < 4; ++t) {
    RILL_ASSERT_OK(explorer->Act(root, {.step = t}, &step).status());
    x += 4 * (1 - x) * 0.1;
    const auto noise = *step.Flat<double>("next/action_noise");
    EXPECT_DOUBLE_EQ(noise[1], x);
    EXPECT_FLOAT_EQ((*step.Flat<float>("action"))[1],
                    static_cast<float>(0.5 * x));
    RILL_ASSERT_OK(
        root.Find("action_noise")->CopyFrom(*step.Find("next/action_noise")));
  }
  // Without exploration the noise waits.
  RILL_ASSERT_OK(explorer->Act(root, {.explore = false}, &step).status());
  EXPECT_DOUBLE_EQ((*step.Flat<double>("next/action_noise"))[0], x);
  EXPECT_EQ((*step.Flat<float>("action"))[0], 0);
}

TEST(ExplorationTest, EqualContextsGiveEqualActionsAndOthersDiffer) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto a, MakeAdditiveGaussian(&policy, Forces(100)));
  RILL_ASSERT_OK_AND_ASSIGN(auto b, MakeAdditiveGaussian(&policy, Forces(100)));
  TensorDict step = *Forces(100).Zero({8});
  const auto first = Act<float>(*a, &step, {.step = 5});
  EXPECT_NE(Act<float>(*a, &step, {.step = 6}), first);
  EXPECT_EQ(Act<float>(*b, &step, {.step = 5}), first);
}

TEST(ExplorationTest, CanBeSwitchedOff) {
  FunctionPolicy policy = Zero();
  RILL_ASSERT_OK_AND_ASSIGN(auto greedy, MakeEGreedy(&policy, Choices()));
  TensorDict choices = *Choices().action.Zero({kLanes});
  EXPECT_THAT(Act<int64_t>(*greedy, &choices, {.explore = false}), Each(0));
  RILL_ASSERT_OK_AND_ASSIGN(auto gaussian,
                            MakeAdditiveGaussian(&policy, Forces(1)));
  TensorDict forces = *Forces(1).Zero({kLanes});
  EXPECT_THAT(Act<float>(*gaussian, &forces, {.explore = false}), Each(0));
}

TEST(ExplorationTest, NamesWhatDoesNotFit) {
  FunctionPolicy policy = Zero();
  EXPECT_THAT(MakeRandomPolicy({}).status(),
              StatusIs(kInvalid, HasSubstr("action: got no leaf")));
  EXPECT_THAT(MakeEGreedy(nullptr, Choices()).status(),
              StatusIs(kInvalid, HasSubstr("policy: got null")));
  EXPECT_THAT(MakeEGreedy(&policy, Choices(), {.eps_end = 1.5}).status(),
              StatusIs(kInvalid, HasSubstr("eps_end: got 1.5")));
  EXPECT_THAT(
      MakeEGreedy(&policy, Choices(), {.annealing_num_steps = 0}).status(),
      StatusIs(kInvalid, HasSubstr("annealing_num_steps: got 0")));
  EXPECT_THAT(MakeAdditiveGaussian(&policy, Choices().action).status(),
              StatusIs(kInvalid, HasSubstr("want float32 or float64")));
  EXPECT_THAT(
      MakeAdditiveGaussian(&policy, Forces(1),
                           {.mean = std::numeric_limits<double>::infinity()})
          .status(),
      StatusIs(kInvalid, HasSubstr("mean: got inf")));
  EXPECT_THAT(MakeOrnsteinUhlenbeck(&policy, Forces(1), {.dt = 0}).status(),
              StatusIs(kInvalid, HasSubstr("dt: got 0")));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(MakeOrnsteinUhlenbeck(&policy, Forces(1), {.theta = inf}),
              StatusIs(kInvalid, HasSubstr(": theta: got inf")));
  EXPECT_THAT(MakeOrnsteinUhlenbeck(&policy, Forces(1), {.mu = inf}),
              StatusIs(kInvalid, HasSubstr(": mu: got inf")));
  RILL_ASSERT_OK_AND_ASSIGN(auto greedy, MakeEGreedy(&policy, Choices()));
  TensorDict step({2});
  EXPECT_FALSE(greedy->Act({}, {}, &step).ok());
}

}  // namespace
}  // namespace rill
