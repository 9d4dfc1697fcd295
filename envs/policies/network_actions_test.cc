// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/network_actions.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

NetworkActions::Draws At(uint64_t step, bool explore = true) {
  return {.rng = Rng(3), .step = step, .explore = explore};
}

NetworkActions Of(ActionKind kind) { return {"Mine::Act", kind, "mask"}; }

TEST(NetworkActionsTest, TheLargestLegalValueIsTheGreedyAction) {
  NetworkActions actions = Of(ActionKind::kGreedy);
  const std::vector<float> values = {1, 9, 2, 1, 2, 9};
  RILL_ASSERT_OK(actions.ChooseDiscrete(values, 3, nullptr, At(0)));
  EXPECT_THAT(actions.indices(), ElementsAre(1, 2));
  const std::array<bool, 6> legal = {true, true, true, true, true, false};
  RILL_ASSERT_OK(actions.ChooseDiscrete(values, 3, legal.data(), At(0)));
  EXPECT_THAT(actions.indices(), ElementsAre(1, 1));
  // Fewer rows behind more.
  RILL_ASSERT_OK(actions.ChooseDiscrete({values.data(), 3}, 3, nullptr, At(0)));
  EXPECT_THAT(actions.indices(), ElementsAre(1));
}

TEST(NetworkActionsTest, DiscreteActionsAreDrawnByTheirProbabilities) {
  constexpr size_t kRows = 64;
  const std::vector<double> probabilities = {0.1, 0.0, 0.6, 0.3};
  std::vector<float> logits;
  std::array<bool, 4 * kRows> legal;
  for (size_t i = 0; i < 4 * kRows; ++i) {
    legal[i] = i % 4 != 1;
    logits.push_back(
        legal[i] ? static_cast<float>(std::log(probabilities[i % 4])) : 5);
  }
  NetworkActions actions = Of(ActionKind::kCategorical);
  std::vector<int64_t> counts(4);
  for (uint64_t step = 0; step < 200; ++step) {
    RILL_ASSERT_OK(actions.ChooseDiscrete(logits, 4, legal.data(), At(step)));
    for (size_t row = 0; row < kRows; ++row) {
      const auto action = static_cast<size_t>(actions.indices()[row]);
      ++counts[action];
      ASSERT_NEAR(std::exp(actions.log_probs()[row]), probabilities[action],
                  1e-5);
    }
  }
  EXPECT_THAT(counts, DistributedAs(probabilities, 1e-4));
  RILL_ASSERT_OK(actions.ChooseDiscrete(logits, 4, legal.data(), At(0, false)));
  EXPECT_THAT(actions.indices(), ::testing::Each(2));
}

TEST(NetworkActionsTest, ContinuousActionsAreATanhOfNormalNumbersWithinBounds) {
  const std::vector<float> loc = {0.5f, -1, 2, 0, 0.25f, -3};
  const std::vector<float> scale = {1, 0.5f, 0.1f, 2, 1, 0.75f};
  const ActionBounds bounds = {.low = {-2, 0}, .high = {2, 1}};
  NetworkActions actions = Of(ActionKind::kTanhNormal);
  RILL_ASSERT_OK(actions.ChooseTanhNormal(loc, scale, 2, bounds, At(8)));
  for (size_t row = 0; row < 3; ++row) {
    double log_prob = 0;
    for (size_t i = 0; i < 2; ++i) {
      const size_t element = 2 * row + i;
      const double noise =
          StandardNormal(Rng(3).Bits(8, static_cast<uint32_t>(element)));
      const double squashed = std::tanh(loc[element] + scale[element] * noise);
      const double half = (bounds.high[i] - bounds.low[i]) / 2;
      EXPECT_NEAR(actions.numbers()[element],
                  bounds.low[i] + half * (1 + squashed), 1e-5);
      log_prob += -0.5 * noise * noise - 0.5 * std::log(2 * std::numbers::pi) -
                  std::log(scale[element] * half) -
                  std::log(1 - squashed * squashed);
    }
    EXPECT_NEAR(actions.log_probs()[row], log_prob, 1e-3);
  }
  RILL_ASSERT_OK(actions.ChooseTanhNormal(loc, scale, 2, bounds, At(8, false)));
  for (size_t i = 0; i < 6; ++i) {
    const double low = bounds.low[i % 2], high = bounds.high[i % 2];
    EXPECT_NEAR(actions.numbers()[i],
                low + (high - low) / 2 * (1 + std::tanh(loc[i])), 1e-5);
  }
}

TEST(NetworkActionsTest, NumbersThatAreNoActionAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  NetworkActions discrete = Of(ActionKind::kCategorical);
  const std::vector<float> values = {0, 1, 2, nan};
  const std::array<bool, 4> legal = {true, true, false, false};
  EXPECT_THAT(
      discrete.ChooseDiscrete(values, 2, nullptr, At(0)),
      StatusIs(kInvalid,
               HasSubstr("Mine::Act: output 0 of the model: got NaN for "
                         "action 1 of row 1")));
  EXPECT_THAT(discrete.ChooseDiscrete(values, 2, legal.data(), At(0)),
              StatusIs(kInvalid, HasSubstr("\"mask\": row 1 has no legal")));
  NetworkActions normal = Of(ActionKind::kTanhNormal);
  const std::vector<float> ones = {1, 1}, bad = {1, 0}, nans = {nan, 1};
  EXPECT_THAT(normal.ChooseTanhNormal(ones, bad, 2, {}, At(0)),
              StatusIs(kInvalid, HasSubstr("standard deviation 0 for number 1 "
                                           "of row 0")));
  EXPECT_THAT(normal.ChooseTanhNormal(nans, ones, 2, {}, At(0)),
              StatusIs(kInvalid, HasSubstr("got mean nan")));
  EXPECT_THAT(
      normal.ChooseTanhNormal(ones, ones, 2, {.low = {1}, .high = {-1}}, At(0)),
      StatusIs(kInvalid, HasSubstr("bounds: got [1, -1]")));
  EXPECT_THAT(
      normal.ChooseTanhNormal(ones, ones, 2,
                              {.low = {0, 0, 0}, .high = {1, 1, 1}}, At(0)),
      StatusIs(kInvalid, HasSubstr("got 3 low and 3 high, want 1 or 2")));
}

}  // namespace
}  // namespace rill
