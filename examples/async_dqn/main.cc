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
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/examples/async_dqn/async_run.h"
#include "rill/examples/async_dqn/worker.h"

ABSL_FLAG(int64_t, workers, 8, "processes that collect");
ABSL_FLAG(uint64_t, seed, 0, "of episodes, weights and actions");
ABSL_FLAG(absl::Duration, kill_every, absl::Seconds(1),
          "how often a worker is killed; inf: never");
ABSL_FLAG(absl::Duration, at_least, absl::Minutes(1),
          "the run goes on for so long, solved or not");
ABSL_FLAG(std::string, replay, "",
          "new folder for the replay; else a temporary one that is removed");

int main(int argc, char** argv) {
  const std::optional<int> worker = rill::WorkerMain(
      argc, argv, {{"async_dqn", rill::async_dqn::MakeWorker}});
  if (worker.has_value()) return *worker;
  absl::SetProgramUsageMessage(
      "A double DQN learns CartPole-v1 from a replay that worker processes "
      "fill, while they are killed.");
  absl::ParseCommandLine(argc, argv);

  rill::async_dqn::RunOptions options;
  options.workers = absl::GetFlag(FLAGS_workers);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.kill_every = absl::GetFlag(FLAGS_kill_every);
  options.at_least = absl::GetFlag(FLAGS_at_least);
  options.replay_directory = absl::GetFlag(FLAGS_replay);
  const bool is_temporary = options.replay_directory.empty();
  if (is_temporary) {
    options.replay_directory = std::filesystem::temp_directory_path() /
                               absl::StrCat("rill_async_dqn_", getpid());
  }
  options.say = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  const auto report = rill::async_dqn::RunAsyncDqn(options);
  if (is_temporary) std::filesystem::remove_all(options.replay_directory);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", report.status().ToString().c_str());
    return 1;
  }
  std::printf(
      "%s: return %.1f after %lld frames and %lld updates; %lld kills, %lld "
      "restarts, %lld cut trajectories, %lld of %lld slices broken\n",
      report->is_solved ? "solved" : "not solved", report->evaluation_return,
      static_cast<long long>(report->frames),
      static_cast<long long>(report->updates),
      static_cast<long long>(report->kills),
      static_cast<long long>(report->restarts),
      static_cast<long long>(report->cuts),
      static_cast<long long>(report->broken_slices),
      static_cast<long long>(report->slices));
  return report->is_solved && report->broken_slices == 0 ? 0 : 1;
}
