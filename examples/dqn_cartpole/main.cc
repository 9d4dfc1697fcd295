// SPDX-License-Identifier: Apache-2.0
//
// dqn_cartpole: see README.md, or --help.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/phases.h"
#include "rill/examples/dqn_cartpole/run_state.h"
#include "rill/examples/dqn_cartpole/trainer.h"
#include "rill/examples/program/stop_signal.h"
#include "rill/telemetry/phase_times.h"
#include "rill/telemetry/progress_line.h"

namespace rill::dqn_cartpole {
namespace {

// "runs/seed_7", or the first of "runs/seed_7_2", "runs/seed_7_3", ... that
// does not exist.
std::string ChooseRunPath(int64_t seed) {
  const std::string first = absl::StrCat("runs/seed_", seed);
  std::string path = first;
  for (int64_t n = 2; PathExists(path); ++n) path = absl::StrCat(first, "_", n);
  return path;
}

void PrintReport(const Trainer& trainer) {
  const RunState& state = trainer.state();
  const double seconds = state.times.total_seconds;
  absl::PrintF("\n%s\n", FormatPhaseTimes(NamedPhases(state.times), seconds));
  absl::PrintF("%d steps, %d episodes, %d updates, %.0f steps/s\n", state.steps,
               state.curve.episodes.size(), state.updates,
               seconds > 0 ? state.steps / seconds : 0.0);
  absl::PrintF(
      "run folder: %s (curve.csv, curve.svg, TensorBoard events, "
      "checkpoint)\n",
      trainer.run_dir());
}

absl::StatusOr<Outcome> Main(int argc, char** argv) {
  const std::vector<const char*> words(argv + 1, argv + argc);
  RILL_ASSIGN_OR_RETURN(CommandLine line, ParseFlags(words));
  if (line.help) {
    absl::PrintF("%s", HelpText());
    return Outcome::kSolved;
  }
  Trainer::Options options;
  options.config = line.config;
  options.given = line.given;
  options.run_dir =
      line.run_dir.empty() ? ChooseRunPath(line.config.seed) : line.run_dir;
  options.resume = line.resume;
  options.stop = &examples::CatchStopSignals();
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(options));
  absl::PrintF("CartPole-v1, double DQN, seed %d; run folder %s%s\n",
               trainer->state().config.seed, trainer->run_dir(),
               line.resume ? absl::StrFormat(", resumed at step %d",
                                             trainer->state().steps)
                           : "");
  // The progress line ends with its block, before anything else is printed.
  absl::StatusOr<Outcome> outcome = Outcome::kNotSolved;
  {
    ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
    outcome = trainer->Run(progress);
  }
  RILL_RETURN_IF_ERROR(outcome.status());
  PrintReport(*trainer);
  absl::PrintF("%s\n", FormatOutcome(*outcome, *trainer));
  return outcome;
}

}  // namespace
}  // namespace rill::dqn_cartpole

int main(int argc, char** argv) {
  const absl::StatusOr<rill::dqn_cartpole::Outcome> outcome =
      rill::dqn_cartpole::Main(argc, argv);
  if (!outcome.ok()) {
    absl::FPrintF(stderr, "dqn_cartpole: %s\n", outcome.status().ToString());
    return 1;
  }
  return *outcome == rill::dqn_cartpole::Outcome::kNotSolved ? 1 : 0;
}
