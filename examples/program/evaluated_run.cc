// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/evaluated_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/examples/program/saved_log.h"
#include "rill/tensors/tensor.h"

namespace rill::examples {

EvaluatedRun::EvaluatedRun(Options options)
    : options_(std::move(options)),
      columns_({{"steps", "progress/steps"}, {"evaluation", "eval/return"}}),
      curve_({.title = options_.title, .threshold = options_.solve_return}),
      next_evaluation_(options_.evaluate_every),
      next_checkpoint_(options_.checkpoint_every) {
  columns_.insert(columns_.end(), options_.columns.begin(),
                  options_.columns.end());
  // Wall time: all before it is the same in every run of one seed and build.
  columns_.push_back({"seconds", "time/seconds"});
}

absl::StatusOr<std::unique_ptr<EvaluatedRun>> EvaluatedRun::Create(
    Options options) {
  auto run = absl::WrapUnique(new EvaluatedRun(std::move(options)));
  RILL_ASSIGN_OR_RETURN(run->files_,
                        RunFiles::Create(run->options_.run_dir, run->columns_,
                                         Clock::System().Now()));
  return run;
}

absl::StatusOr<std::unique_ptr<EvaluatedRun>> EvaluatedRun::Resume(
    Options options, const TensorDict& state, int64_t steps) {
  auto run = absl::WrapUnique(new EvaluatedRun(std::move(options)));
  RILL_ASSIGN_OR_RETURN(const auto counters, state.Flat<int64_t>("counters"));
  if (counters.size() != 2) {
    return DataLoss("EvaluatedRun::Resume: counters: got ", counters.size(),
                    ", want 2");
  }
  run->next_evaluation_ = counters[0];
  run->result_.solved_at = counters[1];
  run->result_.steps = steps;
  run->next_checkpoint_ = steps + run->options_.checkpoint_every;
  RILL_ASSIGN_OR_RETURN(run->files_, LoadLog(state, run->options_.run_dir,
                                             run->columns_, &run->curve_));
  return run;
}

absl::StatusOr<TensorDict> EvaluatedRun::SaveState() const {
  RILL_ASSIGN_OR_RETURN(TensorDict state, SaveLog(*files_, curve_));
  RILL_ASSIGN_OR_RETURN(
      Tensor counters,
      Tensor::From<int64_t>({next_evaluation_, result_.solved_at}, {2}));
  RILL_RETURN_IF_ERROR(state.Set("counters", std::move(counters)));
  return state;
}

absl::Status EvaluatedRun::Add(const Evaluation& evaluation,
                               absl::Duration time, ProgressLine& progress) {
  result_.evaluation_return = evaluation.mean_return;
  if (result_.solved_at < 0 &&
      evaluation.mean_return >= options_.solve_return) {
    result_.solved_at = result_.steps;
  }
  const auto steps = static_cast<double>(result_.steps);
  curve_.evaluations.push_back({steps, evaluation.mean_return});
  std::string line = absl::StrFormat("step %d  return %.2f", result_.steps,
                                     evaluation.mean_return);
  for (size_t i = 0; i < evaluation.values.size(); ++i) {
    absl::StrAppendFormat(&line, "  %s %.3g", options_.columns[i].name,
                          evaluation.values[i]);
  }
  progress.Say(line);
  std::vector<double> row = {steps, evaluation.mean_return};
  row.insert(row.end(), evaluation.values.begin(), evaluation.values.end());
  row.push_back(absl::ToDoubleSeconds(time));
  RILL_RETURN_IF_ERROR(files_->Write(row, Clock::System().Now()));
  return files_->WriteCurve(curve_);
}

absl::StatusOr<RunResult> EvaluatedRun::Run(const Parts& parts,
                                            ProgressLine& progress) {
  const absl::Time begin = Clock::Steady().Now();
  const int64_t first = result_.steps;
  while (result_.steps < options_.total_steps) {
    if (options_.stop != nullptr && *options_.stop) {
      result_.was_interrupted = true;
      break;
    }
    RILL_ASSIGN_OR_RETURN(result_.steps, parts.learn());
    if (result_.steps >= next_evaluation_) {
      next_evaluation_ += options_.evaluate_every;
      RILL_ASSIGN_OR_RETURN(const Evaluation evaluation, parts.evaluate());
      RILL_RETURN_IF_ERROR(
          Add(evaluation, Clock::Steady().Now() - begin, progress));
    }
    if (result_.steps >= next_checkpoint_) {
      next_checkpoint_ += options_.checkpoint_every;
      RILL_RETURN_IF_ERROR(parts.save());
    }
    const absl::Time now = Clock::Steady().Now();
    progress.Update({.steps = result_.steps,
                     .max_steps = options_.total_steps,
                     .mean_return = result_.evaluation_return,
                     .steps_per_second =
                         static_cast<double>(result_.steps - first) /
                         std::max(1e-9, absl::ToDoubleSeconds(now - begin))},
                    now);
  }
  RILL_RETURN_IF_ERROR(parts.save());
  return result_;
}

int ReportRun(const absl::StatusOr<RunResult>& result, int64_t seed,
              double solve_return) {
  if (!result.ok()) {
    absl::FPrintF(stderr, "%s\n", result.status().ToString());
    return 1;
  }
  if (result->was_interrupted) {
    absl::PrintF("stopped at step %d; --resume goes on\n", result->steps);
    return 0;
  }
  const bool is_solved = result->solved_at >= 0;
  absl::PrintF("%s: seed %d, %d steps, return %.2f, ",
               is_solved ? "solved" : "not solved", seed, result->steps,
               result->evaluation_return);
  if (is_solved) {
    absl::PrintF("reached %g at step %d\n", solve_return, result->solved_at);
  } else {
    absl::PrintF("want %g\n", solve_return);
  }
  return is_solved ? 0 : 1;
}

}  // namespace rill::examples
