// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/action_distribution.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// None is 0 or equals another.
at::Tensor Numbers(c10::IntArrayRef sizes) {
  return StandardNormals(Rng(1), 0, sizes);
}

at::Tensor WithGradient(at::Tensor tensor) {
  return tensor.set_requires_grad(true);
}

TEST(ActionDistributionTest, CategoricalExample) {
  const at::Tensor logits = WithGradient(Numbers({6, 3}).abs());
  const at::Tensor mask = at::ones({6, 3}, at::kBool);
  const at::Tensor action = at::zeros({6}, at::kLong);
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                            Categorical::Create(logits, mask));
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor log_prob, actions.LogProb(action));
  EXPECT_EQ(log_prob.sizes(), at::IntArrayRef({6}));
  log_prob.sum().backward();
  EXPECT_TRUE(logits.grad().defined());
}

TEST(ActionDistributionTest, IllegalActionsHaveNoProbabilityAndNoGradient) {
  const at::Tensor logits =
      WithGradient(at::tensor({1.0f, 50.0f, 2.0f}).view({1, 3}));
  const at::Tensor mask = at::tensor({1, 0, 1}).to(at::kBool).view({1, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                            Categorical::Create(logits, mask));
  const double p = 1 / (1 + std::exp(1.0));  // Of action 0 beside action 2.
  EXPECT_NEAR(actions.log_probs()[0][0].item<float>(), std::log(p), 1e-6);
  EXPECT_EQ(actions.log_probs()[0][1].exp().item<float>(), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor entropy, actions.Entropy());
  EXPECT_NEAR(entropy.item<float>(),
              -p * std::log(p) - (1 - p) * std::log(1 - p), 1e-6);
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor log_prob,
                            actions.LogProb(at::zeros({1, 1}, at::kLong)));
  (log_prob.sum() + entropy.sum()).backward();
  EXPECT_EQ(logits.grad()[0][1].item<float>(), 0);
  EXPECT_TRUE(at::isfinite(logits.grad()).all().item<bool>());
  EXPECT_NE(logits.grad()[0][0].item<float>(), 0);
}

TEST(ActionDistributionTest, TanhNormalExample) {
  const at::Tensor loc = WithGradient(Numbers({5, 2}).abs());
  const at::Tensor scale = at::full({5, 2}, 0.5f);
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, TanhNormal::Create(loc, scale));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto drawn,
      actions.Draw(StandardNormals(Rng(7), /*batch=*/3, loc.sizes())));
  EXPECT_EQ(drawn.log_prob.sizes(), at::IntArrayRef({5}));
  (drawn.log_prob.sum() + drawn.action.sum()).backward();
  EXPECT_TRUE(loc.grad().defined());
  // The same as of the action alone.
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor again,
                            actions.LogProb(drawn.action));
  EXPECT_TRUE(again.allclose(drawn.log_prob, 1e-3, 1e-4));
}

// The density of an action integrates to 1 over its bounds.
TEST(ActionDistributionTest, TanhNormalIsADensityWithinItsBounds) {
  constexpr int64_t kCells = 20000;
  for (const auto& [loc, scale] :
       {std::pair{0.0f, 1.0f}, {0.4f, 0.3f}, {-1.0f, 0.7f}}) {
    const double low = -3, high = 5, width = (high - low) / kCells;
    const at::Tensor action = (at::arange(kCells, at::kDouble) + 0.5)
                                  .mul(width)
                                  .add(low)
                                  .view({-1, 1});
    RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                              TanhNormal::Create(at::full_like(action, loc),
                                                 at::full_like(action, scale),
                                                 {.low = {-3}, .high = {5}}));
    RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor log_prob,
                              actions.LogProb(action));
    EXPECT_NEAR(log_prob.exp().sum().item<double>() * width, 1, 1e-3);
  }
}

TEST(ActionDistributionTest, ActionsOnABoundHaveAFiniteLogProb) {
  const at::Tensor loc = at::zeros({2, 1}), scale = at::ones({2, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, TanhNormal::Create(loc, scale));
  RILL_ASSERT_OK_AND_ASSIGN(
      const at::Tensor log_prob,
      actions.LogProb(at::tensor({-1.0f, 1.0f}).view({2, 1})));
  EXPECT_TRUE(at::isfinite(log_prob).all().item<bool>());
  RILL_ASSERT_OK_AND_ASSIGN(const auto drawn,
                            actions.Draw(at::full({2, 1}, 30.0f)));
  EXPECT_TRUE(at::isfinite(drawn.log_prob).all().item<bool>());
}

TEST(ActionDistributionTest, StandardNormalsAreAFunctionOfSeedAndBatch) {
  const at::Tensor normals = StandardNormals(Rng(1), 2, {100, 100});
  EXPECT_TRUE(normals.equal(StandardNormals(Rng(1), 2, {100, 100})));
  EXPECT_FALSE(normals.equal(StandardNormals(Rng(1), 3, {100, 100})));
  EXPECT_NEAR(normals.mean().item<float>(), 0, 0.05);
  EXPECT_NEAR(normals.std().item<float>(), 1, 0.05);
}

TEST(ActionDistributionTest, TensorsThatDoNotGoTogetherAreErrors) {
  const at::Tensor ones = at::ones({4, 2});
  EXPECT_THAT(Categorical::Create({}), StatusIs(kInvalid, HasSubstr("logits")));
  EXPECT_THAT(Categorical::Create(ones, at::ones({4, 3}, at::kBool)),
              StatusIs(kInvalid, HasSubstr("got Bool[4, 3], want Bool[4, 2]")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto categorical, Categorical::Create(ones));
  EXPECT_THAT(categorical.LogProb(at::zeros({3}, at::kLong)),
              StatusIs(kInvalid, HasSubstr("got Long[3], want")));
  EXPECT_THAT(categorical.LogProb(at::full({4}, 2, at::kLong)),
              StatusIs(testing::_, HasSubstr("Categorical::LogProb: torch")));
  EXPECT_THAT(TanhNormal::Create(ones, at::ones({4, 1})),
              StatusIs(kInvalid, HasSubstr("got Float[4, 1], want")));
  EXPECT_THAT(
      TanhNormal::Create(ones, ones, {.low = {0, 0, 0}, .high = {1, 1, 1}}),
      StatusIs(kInvalid, HasSubstr("want 1 or 2")));
  EXPECT_THAT(TanhNormal::Create(ones, ones, {.low = {1}, .high = {1}}),
              StatusIs(kInvalid, HasSubstr("[1, 1]")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto normal, TanhNormal::Create(ones, ones));
  EXPECT_THAT(normal.Draw(at::ones({4})), StatusIs(kInvalid));
  EXPECT_THAT(normal.LogProb(at::ones({4, 2}, at::kLong)), StatusIs(kInvalid));
}

}  // namespace
}  // namespace rill
