// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_TRAINER_H_
#define RILL_EXAMPLES_PPO_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/pipeline.h"
#include "rill/examples/ppo/run_row.h"
#include "rill/examples/ppo/task.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/svg_plot.h"

namespace rill::ppo {

// Where the time of a run went, in seconds.
struct TimeSplit {
  double environment = 0;
  double policy = 0;
  double transforms = 0;  // With the copies from steps into batches.
  double advantages = 0;
  double learn = 0;
  double evaluate = 0;
  double report = 0;  // Rows and files.
  double total = 0;

  // The share that is neither policy nor learning, in the time without the
  // evaluation.
  double OverheadShare() const;
};
std::string FormatTimeSplit(const TimeSplit& split);

// The result of a run.
struct RunResult {
  int64_t steps = 0;
  std::vector<CurvePoint> episodes;  // Returns at the step of their end.
  // The step at which the mean of the last 100 episodes first was at least
  // solve_return; -1: at none.
  int64_t solved_at = -1;
  double evaluation_return = 0;  // Mean of the evaluation at the end.
  bool was_interrupted = false;  // No evaluation then.
  TimeSplit times;

  // The mean over the last 100 episodes; NaN before the first.
  double MeanReturn() const;
};

// The loop: collect, estimate advantages, learn; at the end evaluate.
//
// Thread-safety: thread-compatible; `stop` may be set by a signal handler.
class Trainer {
 public:
  struct Options {
    Task task;
    Config config;
    std::string run_dir = {};  // Empty: no files.
    const std::atomic<bool>* stop = nullptr;
    const Clock* clock = &Clock::Steady();
    const Clock* date = &Clock::System();
  };

  // INVALID_ARGUMENT: configuration, task. FAILED_PRECONDITION: the folder
  // exists.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const Options& options);

  // Runs to the end or to `stop`. Call once.
  absl::StatusOr<RunResult> Run(ProgressLine& progress);

  // Rows of the curve so far (run_row.h), and the parameters that were
  // learned, for comparisons.
  const std::vector<RunRow>& rows() const { return rows_; }
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  Trainer(const Options& options, Pipeline pipeline,
          std::unique_ptr<RunFiles> files);

  absl::Status DoRound();
  absl::Status CountEpisodes(const TensorDict& batch, int64_t first_step);
  absl::Status AddRow();
  absl::Status Evaluate();
  double LearningRate() const;
  double Seconds() const;
  void UpdateTimes();

  Options options_;
  Pipeline pipeline_;
  std::unique_ptr<RunFiles> files_;  // Null: none.
  absl::Time start_;
  std::vector<float> actions_;  // Of a round, where they are discrete.
  RunResult result_;
  std::vector<RunRow> rows_;
  // Sums over the rounds since the last row.
  PpoLearner::UpdateStats sums_;
  int64_t summed_ = 0;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_TRAINER_H_
