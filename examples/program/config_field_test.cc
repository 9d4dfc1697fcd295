// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/config_field.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/testing/status_matchers.h"

namespace rill::examples {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A configuration with a member of each type.
class ConfigFieldTest : public ::testing::Test {
 protected:
  int64_t seed_ = 0;
  double clip_ = 0.2;
  bool resume_ = false;
  std::string run_dir_;
  const std::vector<ConfigField> fields_ = {
      {"seed", &seed_, "Of all draws.", 0, 9e18},
      {"clip", &clip_, "How far.", 1e-12, 1},
      {"resume", &resume_, "Go on."},
      {"run_dir", &run_dir_, "Where."},
  };
};

TEST_F(ConfigFieldTest, Example) {
  const auto example = []() -> absl::Status {
    int64_t lanes = 16;
    double gamma = 0.99;
    const std::vector<ConfigField> fields = {
        {"lanes", &lanes, "Environments that step together.", 1, 4096},
        {"gamma", &gamma, "Discount of future rewards.", 0, 1}};
    RILL_RETURN_IF_ERROR(ReadFlags({"--lanes=8"}, fields).status());
    RILL_RETURN_IF_ERROR(CheckRanges(fields));
    EXPECT_EQ(lanes, 8);
    return absl::OkStatus();
  };
  EXPECT_THAT(example(), IsOk());
}

TEST_F(ConfigFieldTest, FlagsReachMembersAndAreKnownByName) {
  EXPECT_THAT(
      ReadFlags({"--seed=3", "--clip=1e-3", "--resume", "--run_dir=a=b"},
                fields_),
      IsOkAndHolds(UnorderedElementsAre("seed", "clip", "resume", "run_dir")));
  EXPECT_EQ(seed_, 3);
  EXPECT_EQ(clip_, 1e-3);
  EXPECT_TRUE(resume_);
  EXPECT_EQ(run_dir_, "a=b");
  RILL_EXPECT_OK(ReadFlags({"--resume=false"}, fields_));
  EXPECT_FALSE(resume_);
}

TEST_F(ConfigFieldTest, WordsThatAreNoFlagsAreNamed) {
  const struct {
    const char* word;
    const char* text;
  } cases[] = {
      {"seed=3", "got the word \"seed=3\", want --name=value"},
      {"--seed", "--seed: got \"\", want a value like 0"},
      {"--sede=3", "got the flag \"--sede\""},
      {"--seed=three", "--seed: got \"three\", want a value like 0"},
      {"--resume=perhaps", "--resume: got \"perhaps\""},
  };
  for (const auto& [word, text] : cases) {
    EXPECT_THAT(ReadFlags({word}, fields_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

TEST_F(ConfigFieldTest, NumbersOutsideTheirRangeAreRefusedWithBothSides) {
  EXPECT_THAT(CheckRanges(fields_), IsOk());
  clip_ = 1.5;
  EXPECT_THAT(CheckRanges(fields_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--clip: got 1.5, want a value in [1e-12, 1]"));
  clip_ = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(CheckRanges(fields_), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("--clip: got nan")));
  clip_ = 1;
  seed_ = -1;
  EXPECT_THAT(CheckRanges(fields_), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("--seed: got -1")));
}

TEST_F(ConfigFieldTest, TextKeepsEveryBit) {
  seed_ = 9'000'000'000'000'000'001;
  clip_ = 1.0 / 3;
  resume_ = true;
  run_dir_ = "x";
  std::vector<std::string> texts;
  for (const ConfigField& field : fields_) texts.push_back(ValueText(field));
  seed_ = 0;
  clip_ = 0;
  resume_ = false;
  run_dir_ = "";
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(ReadValue(texts[i], fields_[i]));
  }
  EXPECT_EQ(seed_, 9'000'000'000'000'000'001);
  EXPECT_EQ(clip_, 1.0 / 3);
  EXPECT_TRUE(resume_);
  EXPECT_EQ(run_dir_, "x");
}

TEST_F(ConfigFieldTest, HelpShowsEveryFlagWithItsDefault) {
  EXPECT_EQ(FormatHelp(fields_),
            "  --seed=0\n      Of all draws.\n"
            "  --clip=0.2\n      How far.\n"
            "  --resume=false\n      Go on.\n"
            "  --run_dir=\n      Where.\n");
}

}  // namespace
}  // namespace rill::examples
