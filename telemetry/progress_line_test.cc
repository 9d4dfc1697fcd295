// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

const Progress kProgress = {.steps = 40960,
                            .max_steps = 500000,
                            .episodes = 1812,
                            .mean_return = 187.34,
                            .steps_per_second = 45904};
constexpr char kText[] =
    "step 40,960 of 500,000 | 45,904 steps/s | 1,812 episodes | "
    "mean return 187.3 | at most 0:10 left";

// A stream whose text can be read back.
class Memory {
 public:
  Memory() : file_(open_memstream(&data_, &size_)) {}
  ~Memory() {
    std::fclose(file_);
    std::free(data_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return std::string(data_, size_);
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

TEST(ProgressLineTest, Example) {
  Memory out;
  {
    ProgressLine line(out.file(), isatty(fileno(out.file())) == 1);
    line.Update({.steps = 4096, .max_steps = 500'000, .episodes = 187},
                Clock::System().Now());
    line.Say("step 4096: saved");
  }
  EXPECT_EQ(out.text(),
            "step 4,096 of 500,000 | 187 episodes\n"
            "step 4096: saved\n");
}

TEST(ProgressLineTest, NoteStandsAtTheEnd) {
  Progress progress = kProgress;
  progress.note = "7 of 8 workers";
  EXPECT_EQ(FormatProgress(progress), std::string(kText) + " | 7 of 8 workers");
}

TEST(ProgressLineTest, TextHoldsRateEpisodesReturnAndTimeLeft) {
  EXPECT_EQ(FormatProgress(kProgress), kText);
}

TEST(ProgressLineTest, WhatIsNotKnownYetIsLeftOut) {
  EXPECT_EQ(
      FormatProgress({.steps = 0,
                      .max_steps = 999,
                      .mean_return = std::numeric_limits<double>::quiet_NaN()}),
      "step 0 of 999 | 0 episodes");
}

TEST(ProgressLineTest, LongestLineFitsAWideTerminal) {
  EXPECT_THAT(FormatProgress({.steps = 99'999'999,
                              .max_steps = 100'000'000,
                              .episodes = 1'000'000,
                              .mean_return = 500,
                              .steps_per_second = 1'000'000}),
              SizeIs(Lt(120u)));
}

TEST(ProgressLineTest, TerminalLineRewritesItself) {
  Memory out;
  const absl::Time start = absl::UnixEpoch();
  {
    ProgressLine line(out.file(), /*is_terminal=*/true);
    line.Update(kProgress, start);
    line.Update(kProgress, start + absl::Milliseconds(50));  // Too fresh.
    line.Update(kProgress, start + absl::Milliseconds(100));
    line.Say("saved");
  }
  EXPECT_EQ(out.text(),
            std::string(kText) + "\r\033[K" + kText + "\r\033[Ksaved\n");
}

TEST(ProgressLineTest, OpenTerminalLineIsEnded) {
  Memory out;
  { ProgressLine(out.file(), true).Update(kProgress, absl::UnixEpoch()); }
  EXPECT_EQ(out.text(), std::string(kText) + "\n");
}

TEST(ProgressLineTest, PipedOutputIsPlainLines) {
  Memory out;
  const absl::Time start = absl::UnixEpoch();
  {
    ProgressLine line(out.file(), /*is_terminal=*/false);
    line.Update(kProgress, start);
    line.Update(kProgress, start + absl::Seconds(1));  // Too fresh.
    line.Update(kProgress, start + absl::Seconds(2));
    line.Say("saved");
  }
  EXPECT_EQ(out.text(), std::string(kText) + "\n" + kText + "\n" + "saved\n");
  EXPECT_THAT(out.text(), Not(HasSubstr("\r")));
}

}  // namespace
}  // namespace rill
