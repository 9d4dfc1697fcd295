// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/flags.h"

#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Parses a command line and restores all flags afterwards.
absl::StatusOr<CommandLine> Parse(std::vector<std::string> words) {
  absl::FlagSaver saver;
  words.insert(words.begin(), "dqn_cartpole");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return ParseFlags(static_cast<int>(words.size()), argv.data());
}

TEST(FlagsTest, EveryMemberOfConfigHasAFlagThatNamesItsDefault) {
  const auto defaults = ConfigToText(Config());
  for (const ConfigField& field : ConfigFields()) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(field.name);
    ASSERT_NE(flag, nullptr) << field.name;
    EXPECT_TRUE(absl::EndsWith(
        flag->Help(), absl::StrCat("Default ", defaults.at(field.name), ".")))
        << field.name << ": " << flag->Help();
  }
}

TEST(FlagsTest, EveryFlagReachesItsMember) {
  for (const ConfigField& field : ConfigFields()) {
    // 1 is in every range; lanes and frames_per_batch then fit too.
    std::vector<std::string> words = {absl::StrCat("--", field.name, "=1")};
    if (std::string(field.name) == "capacity" ||
        std::string(field.name) == "frames_per_batch") {
      words.push_back("--lanes=1");
    }
    RILL_ASSERT_OK_AND_ASSIGN(CommandLine line, Parse(words));
    EXPECT_EQ(ConfigToText(line.config).at(field.name), "1") << field.name;
    EXPECT_EQ(line.given.count(field.name), 1u);
  }
}

TEST(FlagsTest, NoFlagsMeanTheDefaults) {
  RILL_ASSERT_OK_AND_ASSIGN(CommandLine line, Parse({}));
  EXPECT_EQ(line.config, Config());
  EXPECT_THAT(line.given, IsEmpty());
  EXPECT_FALSE(line.resume);
}

TEST(FlagsTest, GivenFlagsAreKnownByName) {
  RILL_ASSERT_OK_AND_ASSIGN(
      CommandLine line,
      Parse({"--seed=0", "--run_dir=x", "--resume", "--max_steps=9"}));
  EXPECT_THAT(line.given, UnorderedElementsAre("seed", "max_steps"));
  EXPECT_TRUE(line.resume);
  EXPECT_EQ(line.run_dir, "x");
}

TEST(FlagsTest, ValueOutsideItsRangeIsRefused) {
  EXPECT_THAT(Parse({"--lanes=0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--lanes: got 0, want")));
}

TEST(FlagsTest, LeftOverWordsAreRefused) {
  EXPECT_THAT(Parse({"seed=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got the word \"seed=3\"")));
}

TEST(FlagsTest, ResumeNeedsAFolder) {
  EXPECT_THAT(Parse({"--resume"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("no --run_dir")));
}

TEST(FlagsDeathTest, HelpEndsWithExitCode0) {
  EXPECT_EXIT((void)Parse({"--lanes=3", "--help"}), ExitedWithCode(0), "");
}

TEST(FlagsDeathTest, UnknownFlagsAndBrokenNumbersEndWithExitCode1) {
  EXPECT_EXIT((void)Parse({"--sede=3"}), ExitedWithCode(1), "sede");
  EXPECT_EXIT((void)Parse({"--seed=three"}), ExitedWithCode(1),
              "Illegal value 'three' specified for flag 'seed'");
}

}  // namespace
}  // namespace rill::dqn_cartpole
