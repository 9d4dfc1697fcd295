// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/return_scaling.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kGamma = 0.9;

StepTransformUnderTest UnderTest(const ReturnScaling::Options& options,
                                 DType dtype = DType::kFloat32) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("next/reward", LeafSpec::Unbounded(dtype, {1})));
  return BesideAnEnvironment<ReturnScaling>(options, spec);
}

// A transform and its state, for lanes whose rewards the test says.
class Lanes {
 public:
  Lanes(int64_t lanes, const ReturnScaling::Options& options)
      : transform_(*ReturnScaling::Create(options)),
        state_(*transform_->InitialState(lanes)) {}

  TensorDict& state() { return state_; }

  absl::Status Reset(const std::vector<uint8_t>& mask) {
    return transform_->OnReset(mask, {}, &state_);
  }
  // Scaled in place.
  absl::Status Step(std::vector<double>* rewards) {
    const BoundLeaf leaf = {
        .data = reinterpret_cast<std::byte*>(rewards->data()),
        .width = sizeof(double),
        .dtype = DType::kFloat64,
        .rows = static_cast<int64_t>(rewards->size()),
        .shape = {1}};
    return transform_->OnStep({leaf}, &state_);
  }

 private:
  std::unique_ptr<StepTransform> transform_;
  TensorDict state_;
};

// The formula as Stable-Baselines3 has it: VecNormalize and RunningMeanStd,
// updates of batches of the lanes.
class Reference {
 public:
  explicit Reference(size_t lanes) : returns_(lanes, 0) {}

  std::vector<double> Step(const std::vector<double>& rewards) {
    double mean = 0;
    for (size_t i = 0; i < rewards.size(); ++i) {
      returns_[i] = returns_[i] * kGamma + rewards[i];
      mean += returns_[i] / static_cast<double>(rewards.size());
    }
    double variance = 0;
    for (const double value : returns_) {
      variance +=
          (value - mean) * (value - mean) / static_cast<double>(rewards.size());
    }
    Update(mean, variance, static_cast<double>(rewards.size()));
    std::vector<double> scaled;
    for (const double reward : rewards) {
      scaled.push_back(reward / std::sqrt(variance_ + 1e-8));
    }
    return scaled;
  }
  void Reset(const std::vector<uint8_t>& mask) {
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != 0) returns_[i] = 0;
    }
  }

 private:
  void Update(double mean, double variance, double count) {
    const double delta = mean - mean_;
    const double total = count_ + count;
    const double squares = variance_ * count_ + variance * count +
                           delta * delta * count_ * count / total;
    mean_ += delta * count / total;
    variance_ = squares / total;
    count_ = total;
  }

  std::vector<double> returns_;
  double mean_ = 0;
  double variance_ = 1;
  double count_ = 1e-4;
};

TEST(ReturnScalingTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            ReturnScaling::Create({.gamma = 0.99}));
  RILL_EXPECT_OK(scaling->PlanSteps(TedSpec()));
}

TEST(ReturnScalingTest, AgreesWithTheFormulaOfStableBaselines3) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0.3, 2);
  for (const size_t lanes : {1u, 3u, 64u, 300u}) {
    Lanes rill(static_cast<int64_t>(lanes), {.gamma = kGamma});
    Reference reference(lanes);
    RILL_ASSERT_OK(rill.Reset(std::vector<uint8_t>(lanes, 1)));
    for (int step = 0; step < 200; ++step) {
      std::vector<double> rewards(lanes);
      for (double& reward : rewards) reward = normal(random) * (1 + step / 50);
      const std::vector<double> want = reference.Step(rewards);
      RILL_ASSERT_OK(rill.Step(&rewards));
      for (size_t i = 0; i < lanes; ++i) {
        ASSERT_NEAR(rewards[i], want[i], 1e-9 * (1 + std::abs(want[i])))
            << step << ", " << i;
      }
      std::vector<uint8_t> mask(lanes);
      for (uint8_t& ends : mask) ends = random() % 20 == 0;
      reference.Reset(mask);
      RILL_ASSERT_OK(rill.Reset(mask));
    }
  }
}

// Made by RunningMeanStd of Stable-Baselines3 2.9.2 and the three lines of its
// VecNormalize. NormalizeReward of Gymnasium 1.4.0 gives the same within 1e-7,
// as its returns are float32, where the episodes are truncated and reset in the
// same step.
TEST(ReturnScalingTest, GivesTheNumbersOfStableBaselines3) {
  constexpr double kRewards[][2] = {
      {3.5, 1.375},   {0.125, -2.375}, {-2, -4.625},  {-4.25, -4.875},
      {-3.25, 3.125}, {1.5, 4.125},    {0, 1.125},    {4.75, 2.375},
      {1.375, 0.5},   {0.625, 4.375},  {-2.25, 3.25}, {1.75, -5}};
  constexpr double kScaled[][2] = {{3.2936937392667684, 1.293951111854802},
                                   {0.06713634743636447, -1.2755906012909248},
                                   {-0.6428513357783082, -1.4865937139873375},
                                   {-0.9672950427480974, -1.1095443137404646},
                                   {-0.779582892940726, 0.749598935519929},
                                   {0.39307956815801937, 1.0809688124345533},
                                   {0.0, 0.31495208591481655},
                                   {1.2872581516240955, 0.6436290758120478},
                                   {0.36193213312199474, 0.13161168477163446},
                                   {0.16585142485605833, 1.1609599739924084},
                                   {-0.5722395911768985, 0.8265682983666311},
                                   {0.4634303076111244, -1.3240865931746413}};
  Lanes lanes(2, {.gamma = kGamma});
  for (int i = 0; i < 12; ++i) {
    std::vector<double> rewards = {kRewards[i][0], kRewards[i][1]};
    RILL_ASSERT_OK(lanes.Step(&rewards));
    EXPECT_NEAR(rewards[0], kScaled[i][0], 1e-12) << i;
    EXPECT_NEAR(rewards[1], kScaled[i][1], 1e-12) << i;
    RILL_ASSERT_OK(lanes.Reset({static_cast<uint8_t>(i == 3 || i == 8),
                                static_cast<uint8_t>(i == 6 || i == 8)}));
  }
}

TEST(ReturnScalingTest, AResetCountsNothingAndEndsItsLanesReturns) {
  Lanes lanes(2, {.gamma = 0.5});
  std::vector<double> rewards = {8, 4};
  RILL_ASSERT_OK(lanes.Step(&rewards));
  RILL_ASSERT_OK(lanes.Reset({0, 1}));
  RILL_ASSERT_OK(lanes.Reset({0, 0}));
  rewards = {0, 0};
  RILL_ASSERT_OK(lanes.Step(&rewards));
  EXPECT_THAT(lanes.state().Flat<double>("lane_returns"),
              IsOkAndHolds(ElementsAre(4, 0)));
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                            ReadVecNorm(lanes.state(), "returns"));
  EXPECT_EQ(moments.count, 4);
  EXPECT_EQ(moments.loc.data<double>()[0], (8 + 4 + 4 + 0) / 4.);
}

// As one environment or as several whose statistics are merged.
TEST(ReturnScalingTest, LanesTogetherAndApartLearnTheSameToTheBit) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal(0, 1e3);
  Lanes together(3, {});
  std::vector<Lanes> apart;
  for (int i = 0; i < 3; ++i) apart.emplace_back(1, ReturnScaling::Options{});
  for (int step = 0; step < 100; ++step) {
    std::vector<double> rewards = {normal(random), normal(random), 1e-6};
    for (size_t i = 0; i < 3; ++i) {
      std::vector<double> own = {rewards[i]};
      RILL_ASSERT_OK(apart[i].Step(&own));
    }
    RILL_ASSERT_OK(together.Step(&rewards));
  }
  const auto statistics = [](Lanes& lanes) {
    TensorDict own;
    RILL_EXPECT_OK(own.Set("returns", *lanes.state().Get("returns")));
    return own;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict merged,
      MergeVecNorm(statistics(apart[2]), statistics(apart[0])));
  RILL_ASSERT_OK_AND_ASSIGN(merged, MergeVecNorm(merged, statistics(apart[1])));
  RILL_EXPECT_OK(merged.CheckEqual(statistics(together)));
}

TEST(ReturnScalingTest, AFrozenOneAppliesWhatItsStateHasLearned) {
  Lanes learner(1, {});
  std::vector<double> last;
  for (const double reward : {3., -1., 7.}) {
    last = {reward};
    RILL_ASSERT_OK(learner.Step(&last));
  }
  Lanes frozen(1, {.frozen = true});
  std::vector<double> rewards = {7};
  RILL_ASSERT_OK(frozen.Step(&rewards));
  EXPECT_NEAR(rewards[0], 7, 1e-6);  // It knows no statistics.
  frozen.state() = learner.state();
  rewards = {7};
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(frozen.Step(&rewards));
    EXPECT_EQ(rewards, last);
    rewards = {7};
  }
  EXPECT_THAT(frozen.state().Flat<int64_t>("returns"),
              IsOkAndHolds(*learner.state().Flat<int64_t>("returns")));
}

TEST(ReturnScalingTest, ARewardThatIsNotFiniteIsRefusedAndChangesNothing) {
  Lanes lanes(2, {});
  std::vector<double> rewards = {1, 2};
  RILL_ASSERT_OK(lanes.Step(&rewards));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, lanes.state().Clone());
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           -std::numeric_limits<double>::infinity(), 1e200}) {
    rewards = {1, bad};
    EXPECT_THAT(lanes.Step(&rewards),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the statistics stay")));
    RILL_EXPECT_OK(lanes.state().CheckEqual(before));
  }
}

TEST(ReturnScalingTest, StatesOfAnotherLayoutAreRefused) {
  Lanes lanes(2, {});
  std::vector<double> rewards = {1, 2, 3};
  EXPECT_THAT(
      lanes.Step(&rewards),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("\"lane_returns\": want contiguous float64[3]")));
  rewards = {1, 2};
  lanes.state().Find("returns")->data<int64_t>()[1] = 99;  // No window.
  EXPECT_THAT(lanes.Step(&rewards),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("numbers that no rows have")));
}

TEST(ReturnScalingTest, RefusesOptionsAndRewardsByName) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ReturnScaling::Create({.gamma = 1.5}),
              StatusIs(kInvalid, HasSubstr("gamma: got 1.5")));
  EXPECT_THAT(ReturnScaling::Create({.eps = 0}),
              StatusIs(kInvalid, HasSubstr("eps: got 0")));
  EXPECT_THAT(ReturnScaling::Create({.reward_key = ""}), StatusIs(kInvalid));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kInt64, {1})));
  EXPECT_THAT((*ReturnScaling::Create({}))->PlanSteps(spec),
              StatusIs(kInvalid, HasSubstr("\"next/reward\"")));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(ReturnScaling, UnderTest({}));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(FrozenDouble,
                                       UnderTest({.frozen = true},
                                                 DType::kFloat64));

}  // namespace rill
