// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/program.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/examples/program/config_field.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/program/stop_signal.h"
#include "rill/examples/torch_sac/trainer.h"
#include "rill/examples/torch_sac/worker.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"

namespace rill::torch_sac {
namespace {

using examples::ConfigField;

struct Flags {
  Config config;
  std::string run_dir = "";
  bool resume = false;
  int64_t threads = 1;
};

std::vector<ConfigField> Fields(Flags* flags) {
  Config& config = flags->config;
  return {
      {"seed", &config.seed, "Of weights, environments and draws.", 0, 1e9},
      {"total_steps", &config.total_steps,
       "Of the environments; the learner makes an update for each.", 1, 1e9},
      {"random_steps", &config.random_steps, "Before the first update.", 0,
       1e9},
      {"workers", &config.workers, "Processes that step environments.", 1, 64},
      {"capacity", &config.capacity, "Rows of the replay.", 1024, 1e9},
      {"batch_size", &config.batch_size, "Rows of an update.", 1, 1 << 16},
      {"evaluate_every", &config.evaluate_every, "Steps.", 1, 1e9},
      {"evaluation_episodes", &config.evaluation_episodes, "Of one evaluation.",
       1, 1000},
      {"checkpoint_every", &config.checkpoint_every, "Steps.", 1, 1e9},
      {"threads", &flags->threads, "Of torch, for the learner.", 1, 256},
      {"run_dir", &flags->run_dir,
       "New folder for curve, events, replay and checkpoints; default: "
       "runs/torch_sac_<seed>."},
      {"resume", &flags->resume, "Goes on from the checkpoint in run_dir."}};
}

absl::StatusOr<RunResult> DoRun(const Flags& flags, const Task& task) {
  RILL_RETURN_IF_ERROR(SetTorchThreads(static_cast<int>(flags.threads)));
  Trainer::Options options;
  options.task = task;
  options.config = flags.config;
  options.run_dir = flags.run_dir.empty()
                        ? absl::StrCat("runs/torch_sac_", flags.config.seed)
                        : flags.run_dir;
  options.resume = flags.resume;
  options.worker_name = task.name;
  options.stop = &examples::CatchStopSignals();
  RILL_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(std::move(options)));
  ProgressLine progress(stdout, isatty(STDOUT_FILENO) == 1);
  return trainer->Run(progress);
}

}  // namespace

int RunProgram(int argc, char** argv, const Task& task,
               const Config& defaults) {
  // First of all: in a worker process this call is the whole program.
  const std::optional<int> worker = WorkerMain(
      argc, argv, {{task.name, [&task](const WorkerContext& context) {
                      return MakeWorker(task, context);
                    }}});
  if (worker.has_value()) return *worker;

  Flags flags{.config = defaults};
  const std::vector<ConfigField> fields = Fields(&flags);
  const auto words =
      absl::MakeConstSpan(argv + 1, static_cast<size_t>(argc - 1));
  for (const absl::string_view word : words) {
    if (word != "--help") continue;
    absl::PrintF("Soft actor-critic on %s.\n%s", task.name,
                 examples::FormatHelp(fields));
    return 0;
  }
  absl::Status status = examples::ReadFlags(words, fields).status();
  if (status.ok()) status = examples::CheckRanges(fields);
  absl::StatusOr<RunResult> result = status;
  if (status.ok()) result = DoRun(flags, task);
  return examples::ReportRun(result, flags.config.seed, task.solve_return);
}

}  // namespace rill::torch_sac
