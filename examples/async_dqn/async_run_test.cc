// SPDX-License-Identifier: Apache-2.0
// The example in short: a tenth of its length, workers killed ten times as
// often.
#include "rill/examples/async_dqn/async_run.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/process/child_process.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/examples/async_dqn/resources.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill::async_dqn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(AsyncRunTest, KilledWorkersBreakNoSliceAndLeaveNothing) {
  const auto descriptors = NamesIn("/proc/self/fd");
  const size_t mappings = MappingsOf("memfd").size();
  RILL_ASSERT_OK_AND_ASSIGN(
      const RunReport report,
      RunAsyncDqn({.replay_directory = ::testing::TempDir() + "/async_dqn",
                   .workers = 3,
                   .kill_every = absl::Milliseconds(100),
                   .max_frames = 5'000,
                   .solve_return = 1e9}));
  EXPECT_GE(report.frames, 5'000);
  EXPECT_GT(report.updates, 900);
  EXPECT_GT(report.kills, 0);
  EXPECT_GT(report.restarts, 0);
  EXPECT_GT(report.cuts, 0);
  EXPECT_GT(report.slices, 1000);
  EXPECT_EQ(report.broken_slices, 0);
  EXPECT_EQ(NamesIn("/proc/self/fd"), descriptors);
  EXPECT_EQ(MappingsOf("memfd").size(), mappings);
}

// The most that a run had at one of some moments.
Resources MostOf(absl::Span<const Resources> moments) {
  Resources most;
  for (const Resources& at : moments) {
    most.resident_mb = std::max(most.resident_mb, at.resident_mb);
    most.descriptors = std::max(most.descriptors, at.descriptors);
    most.mappings = std::max(most.mappings, at.mappings);
    most.processes = std::max(most.processes, at.processes);
  }
  return most;
}

// The soak in short: a worker is killed after each batch.
TEST(AsyncRunTest, MemoryDescriptorsAndMappingsAreFlatOverHundredsOfKills) {
  constexpr int64_t kWorkers = 3;
  RILL_ASSERT_OK_AND_ASSIGN(
      const RunReport report,
      RunAsyncDqn({.replay_directory = ::testing::TempDir() + "/soak",
                   .workers = kWorkers,
                   .kill_every = absl::ZeroDuration(),
                   .max_frames = 600 * 32,
                   .frames_per_update = 64,
                   .solve_return = 1e9,
                   .watch_every = absl::ZeroDuration()}));
  EXPECT_GT(report.restarts, 200);
  EXPECT_EQ(report.broken_slices, 0);
  const auto moments = absl::MakeConstSpan(report.resources);
  ASSERT_GE(moments.size(), 600);
  const Resources early = MostOf(moments.subspan(50, 100));
  const Resources late = MostOf(moments.last(100));
  // A worker that is there has a socket and a pidfd.
  EXPECT_LE(late.descriptors, early.descriptors + 2 * kWorkers);
  EXPECT_LE(late.mappings, early.mappings + 2 * kWorkers);
  EXPECT_EQ(late.processes, 1 + kWorkers);
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
  // New rows of the replay take 1 MB.
  EXPECT_LT(late.resident_mb, early.resident_mb + 4);
#endif
  RecordProperty("early", FormatResources(early));
  RecordProperty("late", FormatResources(late));
}

TEST(AsyncRunTest, ARunLeavesItsCurveItsRowsAndItsPicture) {
  const std::string folder = ::testing::TempDir() + "/run";
  const RunOptions options = {
      .replay_directory = ::testing::TempDir() + "/with_files",
      .run_dir = folder,
      .workers = 2,
      .kill_every = absl::InfiniteDuration(),
      .max_frames = 8'192,
      .solve_return = 1};
  RILL_ASSERT_OK_AND_ASSIGN(const RunReport report, RunAsyncDqn(options));
  EXPECT_TRUE(report.is_solved);
  EXPECT_EQ(report.solved_at, 4'096);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string csv,
                            ReadFile(folder + "/curve.csv", 1 << 20));
  EXPECT_THAT(csv, StartsWith("frames,episodes,mean_return,evaluation,"));
  EXPECT_THAT(csv, HasSubstr("\n4096,"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string svg,
                            ReadFile(folder + "/curve.svg", 1 << 20));
  EXPECT_THAT(svg, HasSubstr("async_dqn, seed 0"));
  EXPECT_EQ(NamesIn(folder).size(), 3);
  // A second run does not write over it.
  EXPECT_THAT(RunAsyncDqn(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want a new folder")));
}

// All rows of a replay.
std::string RowsOf(const std::string& directory) {
  auto bytes = ReadFile(directory + "/rows.bin", int64_t{1} << 30);
  RILL_EXPECT_OK(bytes);
  return bytes.value_or("");
}

RunOptions ShortRun(const std::string& name, uint64_t seed) {
  return {.replay_directory = ::testing::TempDir() + "/" + name,
          .workers = 3,
          .seed = seed,
          .kill_every = absl::Milliseconds(20),
          .max_frames = 1'600,
          .solve_return = 1e9};
}

TEST(AsyncRunTest, ARecordedRunIsRepeatedBitForBitWhoeverWasKilled) {
  constexpr uint64_t kSeeds = 20;
  int64_t restarts = 0, updates = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const std::string log = ::testing::TempDir() + absl::StrCat("/log", seed);
    RunOptions options = ShortRun(absl::StrCat("recorded", seed), seed);
    RunReport report;
    {
      RILL_ASSERT_OK_AND_ASSIGN(const auto recorder,
                                FlightRecorder::Record({.path = log}));
      options.recorder = recorder.get();
      RILL_ASSERT_OK_AND_ASSIGN(report, RunAsyncDqn(options));
      RILL_EXPECT_OK(recorder->status());
    }
    restarts += report.restarts;
    updates += report.updates;
    const std::string rows = RowsOf(options.replay_directory);
    EXPECT_GT(rows.size(), 1'600 * sizeof(float));

    RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(log));
    options.recorder = recorder.get();
    options.replay_directory += "_again";
    RILL_ASSERT_OK_AND_ASSIGN(const RunReport again, RunAsyncDqn(options));
    EXPECT_TRUE(recorder->has_end());
    RILL_EXPECT_OK(recorder->status());
    EXPECT_EQ(again.frames, report.frames);
    EXPECT_EQ(again.updates, report.updates);
    EXPECT_EQ(again.restarts, report.restarts);
    EXPECT_EQ(again.deaths.by_signal, report.deaths.by_signal);
    EXPECT_EQ(again.deaths.by_worker, report.deaths.by_worker);
    EXPECT_EQ(again.deaths.total(), again.restarts);
    EXPECT_EQ(again.cuts, report.cuts);
    EXPECT_TRUE(RowsOf(options.replay_directory) == rows);
  }
  EXPECT_GT(restarts, static_cast<int64_t>(kSeeds));
  EXPECT_GT(updates, 100 * static_cast<int64_t>(kSeeds));
}

// In a process of its own: it is killed in its 15th call of Publish.
constexpr char kRunAndDie[] = "--run_and_die";
int RunAndDie(const std::string& log, const std::string& name) {
  const auto recorder = FlightRecorder::Record({.path = log});
  if (!recorder.ok()) return 1;
  RunOptions options = ShortRun(name, /*seed=*/3);
  options.recorder = recorder->get();
  int publishes = 0;
  const ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
    if (point == "weights.publish" && ++publishes == 15) raise(SIGKILL);
    return absl::OkStatus();
  });
  RunAsyncDqn(options).IgnoreError();
  return 1;
}

TEST(AsyncRunTest, ARunWhoseLearnerIsKilledIsRepeatedUpToThere) {
  const std::string log = ::testing::TempDir() + "/died_log";
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto child,
      ChildProcess::Start({.program = "/proc/self/exe",
                           .arguments = {kRunAndDie, log, "died"}}));
  ASSERT_TRUE(child->WaitForEnd(absl::InfiniteFuture()));
  child->Kill();
  ASSERT_TRUE(WIFSIGNALED(child->status())) << child->status();
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(log));
  RunOptions options = ShortRun("died_again", /*seed=*/3);
  options.recorder = recorder.get();
  EXPECT_THAT(RunAsyncDqn(options), StatusIs(absl::StatusCode::kAborted,
                                             HasSubstr("the log ends here")));
  EXPECT_FALSE(recorder->has_end());
  RILL_EXPECT_OK(recorder->status());
  EXPECT_GT(recorder->events(), 50);
  EXPECT_TRUE(RowsOf(options.replay_directory) ==
              RowsOf(::testing::TempDir() + "/died"));
}

// The test can fail: a learner that is not the same is found by what it
// publishes.
TEST(AsyncRunTest, ARepeatOfOtherOptionsIsRefusedWhereItDiffers) {
  const std::string log = ::testing::TempDir() + "/other_log";
  RunOptions options = ShortRun("other", /*seed=*/1);
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto recorder,
                              FlightRecorder::Record({.path = log}));
    options.recorder = recorder.get();
    RILL_ASSERT_OK(RunAsyncDqn(options));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(log));
  options.recorder = recorder.get();
  options.replay_directory += "_again";
  options.frames_per_update = 5;
  EXPECT_THAT(RunAsyncDqn(options),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("this is not the same run")));
  EXPECT_THAT(recorder->status(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace rill::async_dqn

int main(int argc, char** argv) {
  const std::optional<int> worker = rill::WorkerMain(
      argc, argv, {{"async_dqn", rill::async_dqn::MakeWorker}});
  if (worker.has_value()) return *worker;
  if (argc == 4 && argv[1] == std::string(rill::async_dqn::kRunAndDie)) {
    return rill::async_dqn::RunAndDie(argv[2], argv[3]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
