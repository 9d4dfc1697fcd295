// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/config.h"

#include <map>
#include <set>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/program/config_field.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(ConfigTest, DefaultsAreValid) {
  EXPECT_THAT(ValidateConfig(Config()), IsOk());
}

TEST(ConfigTest, EveryFlagReachesItsMember) {
  Config defaults;
  std::set<const void*> members;
  for (const examples::ConfigField& field : FieldsOf(&defaults)) {
    const auto address = [](const auto* value) -> const void* { return value; };
    EXPECT_TRUE(members.insert(std::visit(address, field.value)).second)
        << field.name;
    // 1 is in every range; lanes and frames_per_batch then fit too.
    const std::string word = absl::StrCat("--", field.name, "=1");
    RILL_ASSERT_OK_AND_ASSIGN(
        CommandLine line,
        ParseFlags({word.c_str(), "--lanes=1", "--frames_per_batch=1"}));
    EXPECT_EQ(ConfigToText(line.config).at(field.name), "1") << field.name;
    EXPECT_TRUE(line.given.contains(field.name));
    EXPECT_THAT(HelpText(),
                HasSubstr(absl::StrCat("--", field.name, "=",
                                       examples::ValueText(field), "\n")));
  }
}

TEST(ConfigTest, NoFlagsMeanTheDefaults) {
  RILL_ASSERT_OK_AND_ASSIGN(CommandLine line, ParseFlags({}));
  EXPECT_EQ(line.config, Config());
  EXPECT_THAT(line.given, IsEmpty());
  EXPECT_FALSE(line.resume);
}

TEST(ConfigTest, GivenFlagsAreKnownByName) {
  RILL_ASSERT_OK_AND_ASSIGN(
      CommandLine line,
      ParseFlags({"--seed=0", "--run_dir=x", "--resume", "--max_steps=9"}));
  EXPECT_THAT(line.given,
              UnorderedElementsAre("seed", "run_dir", "resume", "max_steps"));
  EXPECT_TRUE(line.resume);
  EXPECT_EQ(line.run_dir, "x");
}

TEST(ConfigTest, ValueOutsideItsRangeIsRefusedUnlessHelpIsAskedFor) {
  EXPECT_THAT(ParseFlags({"--gamma=1.5"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--gamma: got 1.5, want a value in [0, 1]"));
  RILL_ASSERT_OK_AND_ASSIGN(CommandLine line,
                            ParseFlags({"--gamma=1.5", "--help"}));
  EXPECT_TRUE(line.help);
}

TEST(ConfigTest, ResumeNeedsAFolder) {
  EXPECT_THAT(
      ParseFlags({"--resume"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no --run_dir")));
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
