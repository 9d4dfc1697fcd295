// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/config.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo {
namespace {

using ::testing::HasSubstr;

TEST(ConfigTest, FlagsChangeTheDefaultsOfATask) {
  Config defaults;
  defaults.epochs = 7;
  RILL_ASSERT_OK_AND_ASSIGN(
      CommandLine line,
      ParseFlags({"--seed=3", "--learning_rate=1e-3", "--run_dir=a=b",
                  "--anneal_learning_rate=false"},
                 defaults));
  EXPECT_EQ(line.config.seed, 3);
  EXPECT_EQ(line.config.learning_rate, 1e-3);
  EXPECT_FALSE(line.config.anneal_learning_rate);
  EXPECT_EQ(line.config.epochs, 7);
  EXPECT_EQ(line.run_dir, "a=b");
  EXPECT_FALSE(line.help);
}

TEST(ConfigTest, ValuesThatDoNotFitAreNamed) {
  const struct {
    const char* word;
    const char* text;
  } cases[] = {
      {"--clip=2", "--clip: got 2, want a value in [1e-12, 1]"},
      {"--minibatches=3", "want a divisor of the 256 steps"},
      {"--minibatches=256", "at least 2 steps in each"},
  };
  for (const auto& [word, text] : cases) {
    EXPECT_THAT(ParseFlags({word}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

TEST(ConfigTest, HelpShowsTheDefaultsOfATask) {
  Config defaults;
  defaults.learning_rate = 0.125;
  const std::string help = FormatHelp(defaults);
  EXPECT_THAT(help, HasSubstr("--learning_rate=0.125\n"));
  EXPECT_THAT(help, HasSubstr("--normalize_reward=false\n"));
  EXPECT_THAT(help, HasSubstr("--run_dir=\n"));
  RILL_ASSERT_OK_AND_ASSIGN(CommandLine line, ParseFlags({"--help"}, {}));
  EXPECT_TRUE(line.help);
}

}  // namespace
}  // namespace rill::ppo
