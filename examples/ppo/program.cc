// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/program.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/trainer.h"
#include "rill/examples/program/stop_signal.h"
#include "rill/telemetry/progress_line.h"

namespace rill::ppo {
namespace {

void PrintReport(const Task& task, const Config& config,
                 const RunResult& result) {
  absl::PrintF("\n%s\n", FormatTimeSplit(result.times));
  // Without the evaluation, whose length does not follow from the steps.
  absl::PrintF("%d steps, %d episodes, %.2f s for 10,000 steps\n", result.steps,
               result.episodes.size(),
               result.steps > 0 ? (result.times.total - result.times.evaluate) *
                                      10'000 / result.steps
                                : 0.0);
  if (result.was_interrupted) {
    absl::PrintF("interrupted: %s, seed %d, %d steps\n", task.program,
                 config.seed, result.steps);
    return;
  }
  absl::PrintF(
      "%s: seed %d, evaluation of %d episodes %.1f, last 100 episodes %.1f, "
      "%s, %.1f s\n",
      result.evaluation_return >= config.solve_return ? "solved" : "not solved",
      config.seed, config.evaluation_episodes, result.evaluation_return,
      result.MeanReturn(),
      result.solved_at < 0
          ? absl::StrFormat("mean never %g", config.solve_return)
          : absl::StrFormat("mean reached %g at step %d", config.solve_return,
                            result.solved_at),
      result.times.total);
}

absl::StatusOr<int> Main(int argc, char** argv, const Task& task) {
  const std::vector<const char*> words(argv + 1, argv + argc);
  RILL_ASSIGN_OR_RETURN(CommandLine line, ParseFlags(words, task.defaults));
  if (line.help) {
    absl::PrintF("%s: learns by PPO.\n\n%s", task.program,
                 FormatHelp(task.defaults));
    return 0;
  }
  RILL_ASSIGN_OR_RETURN(
      std::unique_ptr<Trainer> trainer,
      Trainer::Create({.task = task,
                       .config = line.config,
                       .run_dir = line.run_dir,
                       .stop = &examples::CatchStopSignals()}));
  absl::StatusOr<RunResult> result = RunResult();
  {
    ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
    result = trainer->Run(progress);
  }
  RILL_RETURN_IF_ERROR(result.status());
  PrintReport(task, line.config, *result);
  const bool is_solved = !result->was_interrupted &&
                         result->evaluation_return >= line.config.solve_return;
  return is_solved ? 0 : 1;
}

}  // namespace

int RunProgram(int argc, char** argv, const Task& task) {
  const absl::StatusOr<int> code = Main(argc, argv, task);
  if (code.ok()) return *code;
  absl::FPrintF(stderr, "%s: %s\n", task.program, code.status().ToString());
  return 1;
}

}  // namespace rill::ppo
