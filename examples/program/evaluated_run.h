// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PROGRAM_EVALUATED_RUN_H_
#define RILL_EXAMPLES_PROGRAM_EVALUATED_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::examples {

struct RunResult {
  int64_t steps = 0;
  double evaluation_return = 0;  // The last one.
  int64_t solved_at = -1;  // The step of the first that was enough; or -1.
  bool was_interrupted = false;
};

// The rest of a run beside collecting and learning: evaluations, with a
// row of curve.csv and of TensorBoard events and a new curve.svg each;
// checkpoints; an end by steps or by a signal.
//
// Thread-safety: thread-compatible; `stop` may be set by a signal handler.
class EvaluatedRun {
 public:
  struct Options {
    std::string title;    // Of the curve.
    std::string run_dir;  // Gets the files.
    double solve_return = 0;
    int64_t total_steps = 0;
    int64_t evaluate_every = 0;
    // One is made at the end too.
    int64_t checkpoint_every = std::numeric_limits<int64_t>::max() / 2;
    // The learner fills these at each evaluation.
    std::vector<RunFiles::Column> columns = {};
    const std::atomic<bool>* stop = nullptr;
  };
  struct Evaluation {
    double mean_return = 0;
    std::vector<double> values = {};  // For each column; NaN: none.
  };
  // The learner's own parts of the loop.
  struct Parts {
    // Collects once and learns from it; returns the steps of the run so far.
    std::function<absl::StatusOr<int64_t>()> learn;
    std::function<absl::StatusOr<Evaluation>()> evaluate;
    std::function<absl::Status()> save;  // A checkpoint with SaveState in it.
  };

  // Errors as RunFiles::Create.
  static absl::StatusOr<std::unique_ptr<EvaluatedRun>> Create(Options options);
  // Goes on at `steps` from a state of SaveState. Errors as LoadLog
  // (saved_log.h); DATA_LOSS where the counters are others.
  static absl::StatusOr<std::unique_ptr<EvaluatedRun>> Resume(
      Options options, const TensorDict& state, int64_t steps);
  absl::StatusOr<TensorDict> SaveState() const;

  // To the end or to `stop`, which leaves a checkpoint. Errors of the parts.
  absl::StatusOr<RunResult> Run(const Parts& parts, ProgressLine& progress);

 private:
  explicit EvaluatedRun(Options options);

  absl::Status Add(const Evaluation& evaluation, absl::Duration time,
                   ProgressLine& progress);

  const Options options_;
  std::vector<RunFiles::Column> columns_;  // Of the files.
  std::unique_ptr<RunFiles> files_;
  LearningCurve curve_;
  RunResult result_;
  int64_t next_evaluation_, next_checkpoint_;
};

// The end of a program: prints how the run ended, an error to stderr. Returns
// the exit code, 0 where it was solved or stopped.
int ReportRun(const absl::StatusOr<RunResult>& result, int64_t seed,
              double solve_return);

}  // namespace rill::examples

#endif  // RILL_EXAMPLES_PROGRAM_EVALUATED_RUN_H_
