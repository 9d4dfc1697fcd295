// SPDX-License-Identifier: Apache-2.0
// Eight processes fill a prioritized memmap replay while a double DQN learns
// CartPole-v1 from it; one of them is killed every second.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/examples/async_dqn/async_run.h"
#include "rill/examples/async_dqn/resources.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/telemetry/progress_line.h"

ABSL_FLAG(int64_t, workers, 8, "processes that collect");
ABSL_FLAG(uint64_t, seed, 0, "of episodes, weights and actions");
ABSL_FLAG(absl::Duration, kill_every, absl::Seconds(1),
          "how often a worker is killed; inf: never");
ABSL_FLAG(absl::Duration, at_least, absl::Minutes(1),
          "the run goes on for so long, whatever it has reached");
ABSL_FLAG(int64_t, max_frames, 10'000'000,
          "a run that is not solved ends there");
ABSL_FLAG(std::string, record, "",
          "new file for what the run decides, which tools/replay_run repeats");
ABSL_FLAG(std::string, run_dir, "",
          "new folder for curve.csv, curve.svg and TensorBoard events");
ABSL_FLAG(std::string, replay, "",
          "new folder for the replay; else a temporary one that is removed");

int main(int argc, char** argv) {
  // First of all: in a worker process this call is the whole program.
  const std::optional<int> worker = rill::WorkerMain(
      argc, argv, {{"async_dqn", rill::async_dqn::MakeWorker}});
  if (worker.has_value()) return *worker;
  absl::SetProgramUsageMessage(
      "A double DQN learns CartPole-v1 from a replay that worker processes "
      "fill, while they are killed.");
  absl::ParseCommandLine(argc, argv);

  const auto recorder =
      rill::FlightRecorder::OfProgram(absl::GetFlag(FLAGS_record), argc, argv);
  if (!recorder.ok()) {
    absl::FPrintF(stderr, "%s\n", recorder.status().ToString());
    return 1;
  }
  const bool repeats = *recorder != nullptr && (*recorder)->repeats();

  rill::async_dqn::RunOptions options;
  options.recorder = recorder->get();
  options.workers = absl::GetFlag(FLAGS_workers);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.kill_every = absl::GetFlag(FLAGS_kill_every);
  options.at_least = absl::GetFlag(FLAGS_at_least);
  options.max_frames = absl::GetFlag(FLAGS_max_frames);
  // A repeat leaves the run's files as they are.
  if (!repeats) options.replay_directory = absl::GetFlag(FLAGS_replay);
  const bool is_temporary = options.replay_directory.empty();
  if (is_temporary) {
    options.replay_directory = std::filesystem::temp_directory_path() /
                               absl::StrCat("rill_async_dqn_", getpid());
  }
  if (!repeats) options.run_dir = absl::GetFlag(FLAGS_run_dir);
  const std::string before = FormatResources(rill::async_dqn::ReadResources());
  const auto report = [&] {
    // It ends with this block, so that its line is complete before the report.
    rill::ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
    options.progress = &progress;
    return rill::async_dqn::RunAsyncDqn(options);
  }();
  if (is_temporary) std::filesystem::remove_all(options.replay_directory);
  // Whether all of the run is noted, or repeated.
  if (*recorder != nullptr && !(*recorder)->status().ok()) {
    absl::FPrintF(stderr, "%s\n", (*recorder)->status().ToString());
    return 1;
  }
  if (repeats) {
    absl::PrintF("repeated: %d events, all equal, up to the end of the log%s\n",
                 (*recorder)->events(),
                 (*recorder)->has_end() ? "" : "; the run has none");
    if (absl::IsAborted(report.status())) return 0;
  }
  if (!report.ok()) {
    absl::FPrintF(stderr, "%s\n", report.status().ToString());
    return 1;
  }
  absl::PrintF("before  %s\n", before);
  absl::PrintF("after   %s\n",
               FormatResources(rill::async_dqn::ReadResources()));
  absl::PrintF(
      "%s: return %.1f, at frame %d of %d; %d updates, %d kills, %d restarts, "
      "%d cut trajectories, %d of %d slices broken\n",
      report->is_solved ? "solved" : "not solved", report->evaluation_return,
      report->solved_at, report->frames, report->updates, report->kills,
      report->restarts, report->cuts, report->broken_slices, report->slices);
  if (repeats) return 0;
  return report->is_solved && report->broken_slices == 0 ? 0 : 1;
}
