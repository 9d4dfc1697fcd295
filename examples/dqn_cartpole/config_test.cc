// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/config.h"

#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ConfigTest, DefaultsAreValid) {
  EXPECT_THAT(ValidateConfig(Config()), IsOk());
}

TEST(ConfigTest, ValueOutsideItsRangeIsRefusedWithBothSides) {
  Config config;
  config.gamma = 1.5;
  EXPECT_THAT(ValidateConfig(config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--gamma: got 1.5, want a value in [0, 1]"));
  config.gamma = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ValidateConfig(config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--gamma: got nan")));
}

TEST(ConfigTest, FlagsThatDoNotFitEachOtherAreRefused) {
  Config config;
  config.lanes = 7;
  EXPECT_THAT(ValidateConfig(config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--capacity: got 50000, want a multiple of --lanes=7"));
  config.capacity = 70;
  EXPECT_THAT(
      ValidateConfig(config),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "--frames_per_batch: got 64, want a multiple of --lanes=7"));
}

TEST(ConfigTest, TextKeepsEveryBit) {
  Config config;
  config.seed = 9'000'000'000'000'000'001;
  config.learning_rate = 1.0 / 3;
  EXPECT_THAT(ConfigFromText(ConfigToText(config)), IsOkAndHolds(config));
}

TEST(ConfigTest, BrokenTextIsDataLoss) {
  std::map<std::string, std::string> text = ConfigToText(Config());
  text["lanes"] = "many";
  EXPECT_THAT(ConfigFromText(text),
              StatusIs(absl::StatusCode::kDataLoss,
                       "ConfigFromText: \"lanes\" is \"many\", want a number"));
  text.erase("lanes");
  EXPECT_THAT(ConfigFromText(text),
              StatusIs(absl::StatusCode::kDataLoss,
                       "ConfigFromText: \"lanes\" is missing"));
}

TEST(ConfigTest, ResumeTakesTheSavedValuesAndGivenLimits) {
  Config saved, wanted;
  saved.seed = 3;
  wanted.seed = 8;  // Not given: only the default of a program that forgot.
  wanted.max_steps = 123;
  Config expected = saved;
  expected.max_steps = 123;
  EXPECT_THAT(MergeForResume(wanted, {"max_steps"}, saved),
              IsOkAndHolds(expected));
}

TEST(ConfigTest, ResumeRefusesAFlagThatWouldBendTheCurve) {
  Config saved, wanted;
  saved.seed = 3;
  wanted.seed = 8;
  EXPECT_THAT(MergeForResume(wanted, {"seed"}, saved),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("got --seed=8"),
                             HasSubstr("started with --seed=3"))));
  wanted.seed = 3;
  EXPECT_THAT(MergeForResume(wanted, {"seed"}, saved), IsOkAndHolds(saved));
}

}  // namespace
}  // namespace rill::dqn_cartpole
