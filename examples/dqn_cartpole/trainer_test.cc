// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/trainer.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/run_row.h"
#include "rill/examples/dqn_cartpole/run_state.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/svg_plot.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Ticks a millisecond a reading, and sets `stop` at the reading `stop_at`: so a
// run is stopped at any point wanted, the same in every run of the test.
class FakeClock : public Clock {
 public:
  absl::Time Now() const override {
    if (++readings_ == stop_at) stop = true;
    return absl::FromUnixSeconds(1'700'000'000) + absl::Milliseconds(readings_);
  }
  int64_t stop_at = -1;
  mutable std::atomic<bool> stop = false;

 private:
  mutable int64_t readings_ = 0;
};

// A short run, also unoptimised: 256 steps, a row each 64, one checkpoint.
Config TinyConfig() {
  Config config;
  config.seed = 3;
  config.lanes = 4;
  config.frames_per_batch = 16;
  config.init_random_frames = 64;
  config.epsilon_frames = 150;
  config.capacity = 120;  // The ring wraps.
  config.batch_size = 8;
  config.updates_per_batch = 2;
  config.probe_every = 64;
  config.probe_episodes = 2;
  config.evaluation_episodes = 3;
  config.max_steps = 256;
  return config;
}

// Runs from the start or the checkpoint to the end or the clock's stop.
absl::StatusOr<Outcome> RunOnce(const std::string& path, const Config& config,
                                bool resume, FakeClock& clock,
                                std::string* last_line = nullptr) {
  Trainer::Options options;
  options.config = config;
  options.run_dir = path;
  options.resume = resume;
  options.stop = &clock.stop;
  options.clock = &clock;
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(options);
  if (!trainer.ok()) return trainer.status();
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  absl::StatusOr<Outcome> outcome = Outcome::kNotSolved;
  {
    ProgressLine progress(nowhere, /*is_terminal=*/false);
    outcome = (*trainer)->Run(progress);
  }
  std::fclose(nowhere);
  if (outcome.ok() && last_line != nullptr) {
    *last_line = FormatOutcome(*outcome, **trainer);
  }
  return outcome;
}

// curve.csv without its two columns of wall time.
std::string CurveOf(const std::string& path) {
  const absl::StatusOr<std::string> csv = ReadFile(JoinPath(path, "curve.csv"));
  EXPECT_THAT(csv, IsOk());
  if (!csv.ok()) return "";
  std::string curve;
  for (absl::string_view line : absl::StrSplit(*csv, '\n')) {
    std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    if (cells.size() > kSeconds) cells.resize(kSeconds);
    absl::StrAppend(&curve, absl::StrJoin(cells, ","), "\n");
  }
  return curve;
}

TEST(TrainerTest, RunWritesItsFolderAndSaysHowItEnded) {
  const std::string path = FreshPath();
  FakeClock clock;
  std::string last_line;
  EXPECT_THAT(RunOnce(path, TinyConfig(), false, clock, &last_line),
              IsOkAndHolds(Outcome::kNotSolved));
  EXPECT_THAT(last_line, AllOf(StartsWith("not solved: seed 3, 256 steps, "),
                               HasSubstr("want an evaluation of 475")));
  EXPECT_THAT(
      ListDirectory(path),
      IsOkAndHolds(IsSupersetOf({"checkpoint", "curve.csv", "curve.svg"})));
  const std::vector<std::string> lines =
      absl::StrSplit(CurveOf(path), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, SizeIs(1 + 256 / 64));
  EXPECT_THAT(lines.back(), StartsWith("256,"));
}

TEST(TrainerTest, EqualSeedsGiveEqualCurvesAndOthersDoNot) {
  FakeClock clock;
  const std::string a = FreshPath("a"), b = FreshPath("b"), c = FreshPath("c");
  Config config = TinyConfig();
  RILL_ASSERT_OK(RunOnce(a, config, false, clock));
  RILL_ASSERT_OK(RunOnce(b, config, false, clock));
  config.seed = 4;
  RILL_ASSERT_OK(RunOnce(c, config, false, clock));
  EXPECT_EQ(CurveOf(a), CurveOf(b));
  EXPECT_NE(CurveOf(a), CurveOf(c));
}

TEST(TrainerTest, StoppedAnywhereAndResumedGivesTheUninterruptedCurve) {
  FakeClock whole;
  const std::string straight = FreshPath("straight");
  RILL_ASSERT_OK(RunOnce(straight, TinyConfig(), false, whole));
  for (const int64_t stop_at : {3, 120}) {
    const std::string path = FreshPath("stopped");
    FakeClock first;
    first.stop_at = stop_at;
    std::string last_line;
    ASSERT_THAT(RunOnce(path, TinyConfig(), false, first, &last_line),
                IsOkAndHolds(Outcome::kInterrupted));
    EXPECT_THAT(last_line, StartsWith("interrupted: seed 3, "));
    // Once more on the way.
    FakeClock second;
    second.stop_at = stop_at;
    ASSERT_THAT(RunOnce(path, Config(), true, second), IsOk());
    FakeClock third;
    ASSERT_THAT(RunOnce(path, Config(), true, third),
                IsOkAndHolds(Outcome::kNotSolved));
    EXPECT_EQ(CurveOf(path), CurveOf(straight)) << "stopped at " << stop_at;
  }
}

// A run that dies without saving goes on from its last periodic checkpoint.
TEST(TrainerTest, KilledRunGoesOnFromItsLastCheckpoint) {
  FakeClock whole;
  const std::string straight = FreshPath("straight");
  RILL_ASSERT_OK(RunOnce(straight, TinyConfig(), false, whole));
  // The checkpoint of a shorter run, beside the files of the whole one.
  const std::string path = FreshPath("killed");
  Config shorter = TinyConfig();
  shorter.max_steps = 150;
  RILL_ASSERT_OK(RunOnce(path, shorter, false, whole));
  RILL_ASSERT_OK_AND_ASSIGN(std::string csv,
                            ReadFile(JoinPath(straight, "curve.csv")));
  RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "curve.csv"), csv));

  Trainer::Options options;
  options.config.max_steps = 256;
  options.given = {"max_steps"};
  options.run_dir = path;
  options.resume = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto trainer, Trainer::Create(options));
  EXPECT_EQ(trainer->state().steps, 160);
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  ProgressLine progress(nowhere, false);
  EXPECT_THAT(trainer->Run(progress), IsOkAndHolds(Outcome::kNotSolved));
  EXPECT_EQ(CurveOf(path), CurveOf(straight));
}

TEST(TrainerTest, ResumeSweepsUpAfterAKilledRun) {
  const std::string path = FreshPath();
  FakeClock clock;
  RILL_ASSERT_OK(RunOnce(path, TinyConfig(), false, clock));
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<std::string> names,
                            ListDirectory(path));
  RILL_ASSERT_OK(CreateDirectories(JoinPath(path, "checkpoint.tmp-7-1/part")));
  for (const char* name : {"curve.svg.tmp-7-2", "my.tmp-notes"}) {
    RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, name), "x"));
  }
  RILL_ASSERT_OK(RunOnce(path, Config(), true, clock));
  names.push_back("my.tmp-notes");
  EXPECT_THAT(ListDirectory(path), IsOkAndHolds(ElementsAreArray(names)));
}

TEST(TrainerTest, SolvedRunStaysSolvedOnResume) {
  const std::string path = FreshPath();
  FakeClock clock;
  Config config = TinyConfig();
  config.solve_return = 1;  // Any policy does.
  std::string last_line;
  ASSERT_THAT(RunOnce(path, config, false, clock, &last_line),
              IsOkAndHolds(Outcome::kSolved));
  EXPECT_THAT(last_line, StartsWith("solved: seed 3, 64 steps, "));
  const std::string curve = CurveOf(path);
  Trainer::Options options;
  options.run_dir = path;
  options.resume = true;
  RILL_ASSERT_OK_AND_ASSIGN(const auto trainer, Trainer::Create(options));
  // The probe and the evaluation behind it.
  EXPECT_THAT(trainer->state().curve.evaluations,
              ElementsAre(Field(&CurvePoint::step, 64),
                          CurvePoint{64, trainer->state().evaluation_return}));
  EXPECT_THAT(RunOnce(path, Config(), true, clock),
              IsOkAndHolds(Outcome::kSolved));
  EXPECT_EQ(CurveOf(path), curve);
}

TEST(TrainerTest, ExistingRunIsNeverOverwritten) {
  const std::string path = FreshPath();
  FakeClock clock;
  RILL_ASSERT_OK(RunOnce(path, TinyConfig(), false, clock));
  const std::string curve = CurveOf(path);
  EXPECT_THAT(RunOnce(path, TinyConfig(), false, clock),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("go on with --resume")));
  EXPECT_EQ(CurveOf(path), curve);
}

TEST(TrainerTest, ResumeWithoutACheckpointIsNotFound) {
  FakeClock clock;
  EXPECT_THAT(RunOnce(FreshPath(), Config(), true, clock),
              StatusIs(absl::StatusCode::kNotFound));
}

// Flips one byte of every file of the checkpoint in turn.
TEST(TrainerTest, DamagedCheckpointIsRefusedAndNothingElseTouched) {
  const std::string path = FreshPath();
  FakeClock clock;
  RILL_ASSERT_OK(RunOnce(path, TinyConfig(), false, clock));
  const std::string curve = CurveOf(path);
  for (const char* name :
       {"rill.json", "learner/online.memmap", "replay/rill.json"}) {
    const std::string file = JoinPath(JoinPath(path, "checkpoint"), name);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string kept, ReadFile(file));
    std::string damaged = kept;
    damaged[damaged.size() / 2] ^= 0x11;
    RILL_ASSERT_OK(WriteFileAtomically(file, damaged));
    EXPECT_THAT(RunOnce(path, Config(), true, clock),
                StatusIs(absl::StatusCode::kDataLoss))
        << name;
    EXPECT_THAT(ReadFile(file), IsOkAndHolds(damaged));
    RILL_ASSERT_OK(WriteFileAtomically(file, kept));
  }
  EXPECT_EQ(CurveOf(path), curve);
  EXPECT_THAT(RunOnce(path, Config(), true, clock), IsOk());
}

}  // namespace
}  // namespace rill::dqn_cartpole
