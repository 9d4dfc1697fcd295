// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_model.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"
#include "torch/nn/modules/linear.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

using Actions = TorchPolicy::Actions;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// None is 0 or equals another.
at::Tensor Numbers(c10::IntArrayRef sizes) {
  return StandardNormals(Rng(1), 0, sizes);
}

// A model that gives these results for all inputs.
TorchModel Giving(std::vector<at::Tensor> results) {
  return TorchModel([results = std::move(results)](
                        absl::Span<const at::Tensor>) { return results; });
}

// [lanes] rows with an observation float32 [lanes, 3].
TensorDict Root(int64_t lanes) {
  TensorDict root({lanes});
  RILL_EXPECT_OK(
      root.Set("observation", *Tensor::Zeros(DType::kFloat32, {lanes, 3})));
  return root;
}

// The leaves that a discrete action is written to.
TensorDict Step(int64_t lanes) {
  TensorDict step({lanes});
  RILL_EXPECT_OK(step.Set("action", *Tensor::Zeros(DType::kInt64, {lanes})));
  RILL_EXPECT_OK(
      step.Set("log_prob", *Tensor::Zeros(DType::kFloat32, {lanes, 1})));
  return step;
}

TensorDict ContinuousStep(int64_t lanes, int64_t width) {
  TensorDict step = Step(lanes);
  RILL_EXPECT_OK(
      step.Set("action", *Tensor::Zeros(DType::kFloat32, {lanes, width})));
  return step;
}

std::unique_ptr<TorchPolicy> Made(TorchPolicy::Options options) {
  auto policy = TorchPolicy::Create(std::move(options));
  RILL_EXPECT_OK(policy);
  return *std::move(policy);
}

TEST(TorchPolicyTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 2}));
  torch::nn::Linear net(4, 2);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto policy,
      TorchPolicy::Create({.model = TorchModel::Of(net.ptr()),
                           .actions = TorchPolicy::Actions::kCategorical}));
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create({.env = std::move(env),
                                                   .policy = policy.get(),
                                                   .frames_per_batch = 20}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  RILL_ASSERT_OK_AND_ASSIGN(const auto log_prob, batch.Flat<float>("log_prob"));
  EXPECT_THAT(log_prob, Each(Le(0)));
  // As the loss will see it.
  const at::Tensor logits = net->forward(*ToTorch(*batch.Find("observation")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, Categorical::Create(logits));
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor again,
                            actions.LogProb(*ToTorch(*batch.Find("action"))));
  EXPECT_TRUE(again.flatten().allclose(
      ToTorch(*batch.Find("log_prob"))->flatten(), 1e-5, 1e-6));
}

TEST(TorchPolicyTest, DiscreteActionsAreDrawnByTheirProbabilities) {
  constexpr int64_t kLanes = 64, kSteps = 1000;
  const std::vector<double> probabilities = {0.1, 0.0, 0.6, 0.3};
  const at::Tensor logits =
      at::log(at::tensor({0.1f, 0.2f, 0.6f, 0.3f})).repeat({kLanes, 1});
  TensorDict root = Root(kLanes), step = Step(kLanes);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor mask,
                            Tensor::Zeros(DType::kBool, {kLanes, 4}));
  for (int64_t i = 0; i < 4 * kLanes; ++i) mask.data<bool>()[i] = i % 4 != 1;
  RILL_ASSERT_OK(root.Set("action_mask", mask));
  const auto policy = Made({.model = Giving({logits}),
                            .actions = Actions::kCategorical,
                            .mask_key = "action_mask"});
  std::vector<int64_t> counts(4);
  for (int64_t i = 0; i < kSteps; ++i) {
    RILL_ASSERT_OK(policy->Act(root, {.step = i}, &step));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t action = step.Find("action")->data<int64_t>()[lane];
      ++counts[static_cast<size_t>(action)];
      ASSERT_NEAR(std::exp(step.Find("log_prob")->data<float>()[lane]),
                  probabilities[static_cast<size_t>(action)], 1e-5);
    }
  }
  EXPECT_THAT(counts, DistributedAs(probabilities, 1e-4));
}

TEST(TorchPolicyTest, WithoutExplorationTheLikeliestLegalActionIsTaken) {
  TensorDict root = Root(2), step = Step(2);
  RILL_ASSERT_OK(root.Set(
      "mask",
      *Tensor::From<bool>({true, true, true, true, true, false}, {2, 3})));
  const at::Tensor values =
      at::tensor({1.0f, 9.0f, 2.0f, 1.0f, 2.0f, 9.0f}).view({2, 3});
  for (const Actions actions : {Actions::kGreedy, Actions::kCategorical}) {
    const auto policy = Made(
        {.model = Giving({values}), .actions = actions, .mask_key = "mask"});
    RILL_ASSERT_OK(policy->Act(root, {.explore = false}, &step));
    EXPECT_THAT(*step.Flat<int64_t>("action"), ElementsAre(1, 1));
  }
}

TEST(TorchPolicyTest, ContinuousActionsAreThoseOfTanhNormal) {
  constexpr int64_t kLanes = 500, kWidth = 2;
  const at::Tensor loc = Numbers({kLanes, kWidth});
  const at::Tensor scale = Numbers({kLanes, kWidth}).abs() + 0.1;
  const ActionBounds bounds = {.low = {-2, 0}, .high = {2, 1}};
  const auto policy = Made({.model = Giving({loc, scale}),
                            .actions = Actions::kTanhNormal,
                            .bounds = bounds,
                            .seed = 5});
  TensorDict root = Root(kLanes), step = ContinuousStep(kLanes, kWidth);
  RILL_ASSERT_OK(policy->Act(root, {.step = 8, .seed = 2}, &step));
  RILL_ASSERT_OK_AND_ASSIGN(const auto normal,
                            TanhNormal::Create(loc, scale, bounds));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto drawn,
      normal.Draw(StandardNormals(
          Rng(ActContext{.seed = 2}.SeedOf(5), RngStream::kPolicy), 8,
          loc.sizes())));
  EXPECT_TRUE(
      ToTorch(*step.Find("action"))->allclose(drawn.action, 1e-5, 1e-5));
  EXPECT_TRUE(ToTorch(*step.Find("log_prob"))
                  ->flatten()
                  .allclose(drawn.log_prob, 1e-4, 1e-4));
  RILL_ASSERT_OK(policy->Act(root, {.explore = false}, &step));
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor mode, normal.Mode());
  EXPECT_TRUE(ToTorch(*step.Find("action"))->allclose(mode, 1e-5, 1e-6));
}

TEST(TorchPolicyTest, RunsRepeatAndSeedsAndStepsDiffer) {
  const at::Tensor logits = at::zeros({64, 5});
  const auto drawn = [&](uint64_t own, uint64_t callers, int64_t at) {
    TensorDict step = Step(64);
    const auto policy = Made({.model = Giving({logits}),
                              .actions = Actions::kCategorical,
                              .seed = own});
    RILL_EXPECT_OK(policy->Act(Root(64), {.step = at, .seed = callers}, &step));
    const auto actions = *step.Flat<int64_t>("action");
    return std::vector<int64_t>(actions.begin(), actions.end());
  };
  EXPECT_EQ(drawn(1, 2, 3), drawn(1, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(2, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 3, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 2, 4));
}

TEST(TorchPolicyTest, FurtherOutputsAndRecurrentStateAreLeavesOfTheStep) {
  TensorDictSpec outputs;
  RILL_ASSERT_OK(
      outputs.Set("state_value", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(
      outputs.Set("next/hidden", LeafSpec::Unbounded(DType::kFloat32, {2})));
  const auto policy =
      Made({.model = TorchModel([](absl::Span<const at::Tensor> in) {
              const at::Tensor hidden = in[1] + 1;
              return std::vector<at::Tensor>{at::zeros({3, 4}),
                                             hidden.sum(-1, true), hidden};
            }),
            .in_keys = {"observation", "hidden"},
            .actions = Actions::kCategorical,
            .outputs = outputs});
  EXPECT_THAT(policy->output_spec().LeafKeys(),
              ElementsAre("state_value", "next/hidden", "log_prob"));
  TensorDict root = Root(3), step = Step(3);
  RILL_ASSERT_OK(root.Set("hidden", *Tensor::Zeros(DType::kFloat32, {3, 2})));
  RILL_ASSERT_OK(
      step.Set("state_value", *Tensor::Zeros(DType::kFloat32, {3, 1})));
  RILL_ASSERT_OK(
      step.Set("next/hidden", *Tensor::Zeros(DType::kFloat32, {3, 2})));
  RILL_ASSERT_OK(policy->Act(root, {}, &step));
  EXPECT_THAT(*step.Flat<float>("state_value"), Each(2));
  EXPECT_THAT(*step.Flat<float>("next/hidden"), Each(1));
}

TEST(TorchPolicyTest, AFrameCarriesTheVersionOfItsWeights) {
  int64_t version = 40;
  const auto policy = Made({.model = Giving({at::zeros({2, 3})}),
                            .actions = Actions::kGreedy,
                            .load_weights = [&]() -> absl::StatusOr<int64_t> {
                              if (version == 42)
                                return absl::DataLossError("gone");
                              return ++version;
                            }});
  TensorDict root = Root(2), step = Step(2);
  EXPECT_THAT(policy->Act(root, {}, &step), IsOkAndHolds(41));
  EXPECT_THAT(policy->Act(root, {}, &step), IsOkAndHolds(42));
  EXPECT_THAT(policy->Act(root, {}, &step),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(TorchPolicyTest, DeterministicActionsAreWhatTheModelGives) {
  const at::Tensor action = Numbers({4, 2}).abs();
  TensorDict root = Root(4), step = ContinuousStep(4, 2);
  RILL_ASSERT_OK(Made({.model = Giving({action})})->Act(root, {}, &step));
  EXPECT_TRUE(ToTorch(*step.Find("action"))->equal(action));
  EXPECT_THAT(
      Made({.model = Giving({action.to(at::kDouble)})})->Act(root, {}, &step),
      StatusIs(kInvalid, AllOf(HasSubstr("\"action\": got float64[4, 2]"),
                               HasSubstr("want float32[4, 2]"))));
  EXPECT_THAT(
      Made({.model = Giving({Numbers({4, 3}).abs()})})->Act(root, {}, &step),
      StatusIs(kInvalid, HasSubstr("got float32[4, 3]")));
}

struct BadCase {
  const char* name;
  TorchPolicy::Options options;
  const char* text;
};

TEST(TorchPolicyTest, WhatDoesNotFitIsAStatusWithKeyGotAndWant) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  TensorDict root = Root(2);
  RILL_ASSERT_OK(root.Set("mask", *Tensor::Zeros(DType::kBool, {2, 3})));
  const at::Tensor logits = at::zeros({2, 3});
  const auto categorical = [&](std::vector<at::Tensor> results) {
    return TorchPolicy::Options{.model = Giving(std::move(results)),
                                .actions = Actions::kCategorical};
  };
  std::vector<BadCase> cases;
  cases.push_back({"another width",
                   {.model = TorchModel::Of(torch::nn::Linear(4, 2).ptr()),
                    .actions = Actions::kCategorical},
                   "inputs: Float[2, 3] on cpu"});
  cases.push_back({"no such leaf", categorical({logits}), "pixels"});
  cases.back().options.in_keys = {"pixels"};
  cases.push_back({"other dtype", categorical({logits.to(at::kDouble)}),
                   "got Double[2, 3] on cpu, want Float"});
  cases.push_back(
      {"other lanes", categorical({at::zeros({5, 3})}),
       "\"action\": got int64[5] on cpu of the model, want int64[2]"});
  cases.push_back({"too many", categorical({logits, logits}),
                   "got 2 outputs of the model, want 1"});
  cases.push_back({"none", categorical({}), "got 0 outputs"});
  cases.push_back({"undefined", categorical({at::Tensor()}), "undefined"});
  cases.push_back({"NaN", categorical({logits + nan}), "NaN for action 0"});
  cases.push_back({"no action is legal", categorical({logits}),
                   "\"mask\": row 0 has no legal action"});
  cases.back().options.mask_key = "mask";
  cases.push_back({"mask of another size", categorical({at::zeros({2, 4})}),
                   "\"mask\": got bool[2, 3]"});
  cases.back().options.mask_key = "mask";
  cases.push_back(
      {"no positive scale",
       {.model = Giving({logits, logits}), .actions = Actions::kTanhNormal},
       "standard deviation 0"});
  cases.push_back({"scale of another shape",
                   {.model = Giving({logits, at::ones({2, 1})}),
                    .actions = Actions::kTanhNormal},
                   "got Float[2, 1] on cpu for the standard deviation"});
  cases.push_back({"bounds in disorder",
                   {.model = Giving({logits, at::ones({2, 3})}),
                    .actions = Actions::kTanhNormal,
                    .bounds = {.low = {1}, .high = {-1}}},
                   "bounds: got [1, -1]"});
  cases.push_back(
      {"exception",
       {.model = TorchModel(
            [](absl::Span<const at::Tensor>) -> std::vector<at::Tensor> {
              throw std::runtime_error("lost");
            })},
       "lost"});
  for (BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    TensorDict step = Step(2);
    RILL_ASSERT_OK_AND_ASSIGN(const auto policy,
                              TorchPolicy::Create(std::move(bad.options)));
    EXPECT_THAT(policy->Act(root, {}, &step),
                StatusIs(::testing::_, HasSubstr(bad.text)));
  }
}

TEST(TorchPolicyTest, OptionsThatMeanNothingAreRefused) {
  EXPECT_THAT(TorchPolicy::Create({}), StatusIs(kInvalid, HasSubstr("model")));
  EXPECT_THAT(TorchPolicy::Create({.model = Giving({}), .in_keys = {}}),
              StatusIs(kInvalid, HasSubstr("in_keys")));
  EXPECT_THAT(TorchPolicy::Create({.model = Giving({}), .mask_key = "mask"}),
              StatusIs(kInvalid, HasSubstr("mask_key")));
}

}  // namespace
}  // namespace rill
