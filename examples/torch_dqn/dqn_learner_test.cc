// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/dqn_learner.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/torch_dqn/q_network.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/training_state.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "torch/utils.h"

namespace rill::torch_dqn {
namespace {

constexpr int64_t kRows = 16;
constexpr Sizes kSizes = {.frames = 2,
                          .height = 5,
                          .width = 6,
                          .actions = 3,
                          .channels = 4,
                          .hidden = 8};

TorchTensors RandomBatch() {
  torch::manual_seed(1);
  const auto pixels = [] {
    return at::randint(256, {kRows, kSizes.frames, kSizes.height, kSizes.width},
                       at::kByte);
  };
  TorchTensors batch;
  batch.insert("pixels", pixels());
  batch.insert("action", at::randint(kSizes.actions, {kRows}, at::kLong));
  batch.insert("priority_weight", at::rand({kRows}));
  batch.insert("gamma", at::rand({kRows, 1}));
  batch.insert("next/pixels", pixels());
  batch.insert("next/reward", at::rand({kRows, 1}));
  batch.insert("next/terminated", at::rand({kRows, 1}) < 0.5);
  return batch;
}

TEST(DqnLearnerTest, ErrorsAreThoseOfTheDoubleTarget) {
  DqnLearner learner({.sizes = kSizes, .rate = 0.01});
  TorchTensors leaves = RandomBatch();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, FromTorch(leaves, {kRows}));
  // Network and target are then two.
  for (int i = 0; i < 20; ++i) RILL_ASSERT_OK(learner.Update(batch));
  RILL_ASSERT_OK_AND_ASSIGN(const TrainingParts parts, learner.parts());
  QNetwork target(kSizes);
  RILL_ASSERT_OK_AND_ASSIGN(ModuleWeights weights, ModuleWeights::Of(target));
  RILL_ASSERT_OK(weights.Load(parts.weights.at("target").dict()));

  const at::Tensor values = learner.network()->forward(leaves["pixels"]);
  const at::Tensor ahead = learner.network()->forward(leaves["next/pixels"]);
  const at::Tensor judged = target.forward(leaves["next/pixels"]);
  std::vector<float> want;
  int64_t differ = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto best = ahead[row].argmax().item<int64_t>();
    differ += best != judged[row].argmax().item<int64_t>() ? 1 : 0;
    const float goal = leaves["next/reward"][row].item<float>() +
                       (leaves["next/terminated"][row].item<bool>()
                            ? 0.0f
                            : leaves["gamma"][row].item<float>() *
                                  judged[row][best].item<float>());
    const auto action = leaves["action"][row].item<int64_t>();
    want.push_back(std::abs(values[row][action].item<float>() - goal));
  }
  EXPECT_GT(differ, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const DqnLearner::Stats stats,
                            learner.Update(batch));
  EXPECT_TRUE(
      at::allclose(stats.td_errors.abs(), at::tensor(want), 1e-5, 1e-5));
}

TEST(DqnLearnerTest, ARowOfWeightZeroTeachesNothing) {
  DqnLearner learner({.sizes = kSizes});
  TorchTensors leaves = RandomBatch();
  leaves["priority_weight"].zero_();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, FromTorch(leaves, {kRows}));
  std::vector<at::Tensor> before;
  for (const at::Tensor& weight : learner.network()->parameters()) {
    before.push_back(weight.detach().clone());
  }
  RILL_ASSERT_OK(learner.Update(batch));
  const auto after = learner.network()->parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(before[i].equal(after[i])) << "parameter " << i;
  }
}

TEST(DqnLearnerTest, LeavesThatAreMissingOrDoNotFitAreErrors) {
  DqnLearner learner({.sizes = kSizes});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            FromTorch(RandomBatch(), {kRows}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict less, batch.Exclude({"gamma"}));
  EXPECT_THAT(
      learner.Update(less).status(),
      StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("gamma")));
  TorchTensors other = RandomBatch();
  other["pixels"] = other["pixels"].flatten(1);
  RILL_ASSERT_OK_AND_ASSIGN(batch, FromTorch(other, {kRows}));
  EXPECT_THAT(learner.Update(batch).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::torch_dqn
