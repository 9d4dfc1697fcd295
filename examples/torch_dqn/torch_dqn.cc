// SPDX-License-Identifier: Apache-2.0
// Rainbow's parts learn Catch by its images, with a network of LibTorch.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/examples/program/config_field.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/program/stop_signal.h"
#include "rill/examples/torch_dqn/atari_task.h"
#include "rill/examples/torch_dqn/catch_task.h"
#include "rill/examples/torch_dqn/trainer.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"

namespace rill::torch_dqn {
namespace {

using examples::ConfigField;

struct Flags {
  Config config;
  std::string game = "";
  std::string python_path = "";
  int64_t size = 12;
  int64_t threads = 1;
  std::string run_dir = "";
  bool resume = false;
};

std::vector<ConfigField> Fields(Flags* flags) {
  Config& config = flags->config;
  return {
      {"seed", &config.seed, "Of weights, environments and draws.", 0, 1e9},
      {"game", &flags->game,
       "Of the Arcade Learning Environment, as ALE/Pong-v5; default: Catch."},
      {"python_path", &flags->python_path,
       "Where gymnasium and ale_py are, if Python does not find them."},
      {"size", &flags->size, "Pixels of a side of Catch.", 4, 256},
      {"total_steps", &config.total_steps, "Of the environments.", 1, 1e9},
      {"random_steps", &config.random_steps, "Before the first update.", 1,
       1e9},
      {"lanes", &config.lanes, "Environments that step together.", 1, 4096},
      {"steps_per_batch", &config.steps_per_batch, "Of all lanes.", 1, 1e6},
      {"updates_per_batch", &config.updates_per_batch, "Between two batches.",
       1, 1e6},
      {"capacity", &config.capacity, "Rows of the replay.", 1024, 1e9},
      {"batch_size", &config.batch_size, "Rows of an update.", 1, 1 << 16},
      {"n_step", &config.n_step, "Rewards of a window.", 1, 1024},
      {"gamma", &config.gamma, "Discount of a step.", 1e-9, 1},
      {"alpha", &config.alpha, "Exponent of priorities.", 0, 10},
      {"beta", &config.beta, "Exponent of importance weights at first.", 0, 1},
      {"beta_steps", &config.beta_steps, "From beta to 1.", 1, 1e9},
      {"epsilon", &config.epsilon, "Share of random actions at last.", 0, 1},
      {"epsilon_steps", &config.epsilon_steps, "From 1 to epsilon.", 1, 1e9},
      {"evaluate_every", &config.evaluate_every, "Steps.", 1, 1e9},
      {"evaluation_episodes", &config.evaluation_episodes, "Of one evaluation.",
       1, 10'000},
      {"checkpoint_every", &config.checkpoint_every, "Steps.", 1, 1e9},
      {"threads", &flags->threads, "Of torch.", 1, 256},
      {"run_dir", &flags->run_dir,
       "New folder for curve, events and checkpoints; default: "
       "runs/torch_dqn_<seed>."},
      {"resume", &flags->resume, "Goes on from the checkpoint in run_dir."}};
}

absl::StatusOr<Task> MakeTask(const Flags& flags) {
  if (flags.game.empty()) return CatchTask(flags.size);
  AtariOptions options = {.id = flags.game};
  if (!flags.python_path.empty()) options.python_path = {flags.python_path};
  return AtariTask(options);
}

absl::StatusOr<RunResult> DoRun(const Flags& flags, const Task& task) {
  RILL_RETURN_IF_ERROR(SetTorchThreads(static_cast<int>(flags.threads)));
  RILL_ASSIGN_OR_RETURN(
      auto trainer,
      Trainer::Create(
          {.task = task,
           .config = flags.config,
           .run_dir = flags.run_dir.empty()
                          ? absl::StrCat("runs/torch_dqn_", flags.config.seed)
                          : flags.run_dir,
           .resume = flags.resume,
           .stop = &examples::CatchStopSignals()}));
  ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
  return trainer->Run(progress);
}

// 0 where the run was solved or stopped.
int Main(absl::Span<const char* const> words) {
  Flags flags;
  const std::vector<ConfigField> fields = Fields(&flags);
  for (const absl::string_view word : words) {
    if (word != "--help") continue;
    absl::PrintF("Rainbow's parts on images.\n%s",
                 examples::FormatHelp(fields));
    return 0;
  }
  absl::Status status = examples::ReadFlags(words, fields).status();
  if (status.ok()) status = examples::CheckRanges(fields);
  absl::StatusOr<Task> task = status;
  if (status.ok()) task = MakeTask(flags);
  absl::StatusOr<RunResult> result = task.status();
  if (task.ok()) result = DoRun(flags, *task);
  return examples::ReportRun(result, flags.config.seed,
                             task.ok() ? task->solve_return : 0);
}

}  // namespace
}  // namespace rill::torch_dqn

int main(int argc, char** argv) {
  return rill::torch_dqn::Main(
      absl::MakeConstSpan(argv + 1, static_cast<size_t>(argc - 1)));
}
