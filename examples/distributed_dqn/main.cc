// SPDX-License-Identifier: Apache-2.0
// A learner, two replay shards and four collectors learn CartPole-v1, on
// threads of one process.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/examples/distributed_dqn/one_process.h"
#include "rill/examples/program/stop_signal.h"

ABSL_FLAG(int64_t, shards, 2, "servers of the replay");
ABSL_FLAG(int64_t, collectors, 4, "a multiple of the shards");
ABSL_FLAG(uint64_t, seed, 0, "of weights, samples and evaluations");
ABSL_FLAG(absl::Duration, kill_every, absl::InfiniteDuration(),
          "how often a shard is killed, to come back from its checkpoint");

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "A learner, replay shards and collectors learn CartPole-v1, on threads "
      "of "
      "one process.");
  absl::ParseCommandLine(argc, argv);
  rill::distributed_dqn::OneProcessOptions options;
  options.shards = absl::GetFlag(FLAGS_shards);
  options.collectors = absl::GetFlag(FLAGS_collectors);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.kill_every = absl::GetFlag(FLAGS_kill_every);
  options.checkpoint_directory =
      std::filesystem::temp_directory_path() /
      absl::StrCat("rill_distributed_dqn_", getpid());
  options.stop = &rill::examples::CatchStopSignals();
  options.say = [](const std::string& line) {
    absl::PrintF("%s\n", line);
    std::fflush(stdout);
  };
  const auto report = rill::distributed_dqn::RunInOneProcess(options);
  std::filesystem::remove_all(options.checkpoint_directory);
  if (!report.ok()) {
    absl::FPrintF(stderr, "%s\n", report.status().ToString());
    return 1;
  }
  absl::PrintF(
      "%s: return %.1f after %d updates; %d rows acknowledged, %d lost by %d "
      "kills, %d stored\n",
      report->learner.is_solved ? "solved" : "not solved",
      report->learner.evaluation_return, report->learner.updates,
      report->rows_acknowledged, report->rows_lost, report->kills,
      report->rows_stored);
  return report->learner.is_solved ? 0 : 1;
}
