// SPDX-License-Identifier: Apache-2.0
//
// torch_ppo_recurrent: see README.md, or --help.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/examples/program/config_field.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/program/stop_signal.h"
#include "rill/examples/torch_ppo_recurrent/trainer.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"

namespace rill::torch_ppo_recurrent {
namespace {

absl::StatusOr<int> Main(int argc, char** argv) {
  Trainer::Options options;
  Config& config = options.config;
  bool help = false;
  constexpr double kMany = 1e9;
  const std::vector<examples::ConfigField> fields = {
      {"seed", &config.seed, "Equal seeds give equal runs.", 0, kMany},
      {"has_memory", &config.has_memory,
       "=false: the state is zero before each step."},
      {"total_steps", &config.total_steps, "Steps of the run.", 1, kMany},
      {"lanes", &config.lanes, "Environments that step together.", 1, 4096},
      {"steps_per_round", &config.steps_per_round,
       "Steps of each lane before the learner gets them.", 1, kMany},
      {"units", &config.units, "Of the recurrent state.", 1, 4096},
      {"sequence_length", &config.sequence_length, "Steps to learn from.", 1,
       kMany},
      {"burn_in", &config.burn_in, "Steps before them that warm the state up.",
       0, kMany},
      {"epochs", &config.epochs, "Passes over a round's steps.", 1, kMany},
      {"minibatches", &config.minibatches, "About as many in a pass.", 1,
       kMany},
      {"learning_rate", &config.learning_rate, "Adam's, at the beginning.", 0,
       1},
      {"evaluate_every", &config.evaluate_every, "Steps.", 1, kMany},
      {"run_dir", &options.run_dir,
       "New folder for the curve, events and the checkpoint; default: "
       "runs/torch_ppo_recurrent_<seed>."},
      {"resume", &options.resume, "Goes on from the checkpoint in run_dir."},
      {"help", &help, "Explains the flags."}};
  const std::vector<const char*> words(argv + 1, argv + argc);
  RILL_RETURN_IF_ERROR(examples::ReadFlags(words, fields).status());
  if (help) {
    absl::PrintF("Learns to remember, by PPO with a GRU of LibTorch.\n\n%s",
                 examples::FormatHelp(fields));
    return 0;
  }
  RILL_RETURN_IF_ERROR(examples::CheckRanges(fields));
  if (options.run_dir.empty()) {
    options.run_dir = absl::StrCat("runs/torch_ppo_recurrent_", config.seed);
  }
  options.stop = &examples::CatchStopSignals();
  // One thread is fastest for a network this small.
  RILL_RETURN_IF_ERROR(SetTorchThreads(1));
  RILL_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(options));
  absl::StatusOr<RunResult> result;
  {
    ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
    result = trainer->Run(progress);
  }
  return examples::ReportRun(result, config.seed, kSolveReturn);
}

}  // namespace
}  // namespace rill::torch_ppo_recurrent

int main(int argc, char** argv) {
  const absl::StatusOr<int> code = rill::torch_ppo_recurrent::Main(argc, argv);
  if (code.ok()) return *code;
  absl::FPrintF(stderr, "torch_ppo_recurrent: %s\n", code.status().ToString());
  return 1;
}
