// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_TRAINER_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/envs/env.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/pipeline.h"
#include "rill/examples/dqn_cartpole/run_state.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::dqn_cartpole {

// How a run ended.
enum class Outcome { kSolved, kNotSolved, kInterrupted };

// Trains until a greedy evaluation reaches Config::solve_return, max_steps are
// over, or `stop` is set; writes the run folder as it goes:
//
//   curve.csv     one row each --probe_every frames (run_row.h)
//   curve.svg     the learning curve
//   events.out.tfevents.*   the rows as TensorBoard scalars
//   checkpoint/   what --resume goes on from (checkpoint.h)
//
// One round: collect a batch, store it, learn from a few samples. Every
// probe_every frames a few greedy episodes are run; if they do well, fresh
// ones decide. Every row of the curve, its wall times left out, is a function
// of the configuration and the build. A run may so be stopped anywhere and
// resumed, from its last checkpoint or the one that stopping wrote.
//
// Thread-safety: thread-compatible; `stop` may be set from anywhere, signal
//   handlers included.
class Trainer {
 public:
  struct Options {
    Config config = {};
    std::set<std::string> given = {};  // Flags that resuming must honour.
    std::string run_dir = {};          // Required.
    bool resume = false;
    const std::atomic<bool>* stop = nullptr;  // Not owned.
    const Clock* clock = &Clock::System();    // Not owned.
  };

  // Makes the run folder, or loads its checkpoint where `resume`. Errors as
  // ValidateConfig, RunFiles::Create and LoadCheckpoint; then nothing in an
  // existing folder has changed.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const Options& options);

  // Trains to the end and saves; a new run saves at its start too, so that it
  // can always be resumed. Says to `progress` what goes on. With an error (a
  // full disk) the last checkpoint is the one before.
  absl::StatusOr<Outcome> Run(ProgressLine& progress);

  const RunState& state() const { return state_; }
  const std::string& run_dir() const { return run_dir_; }

 private:
  Trainer(const Options& options, RunState state, Pipeline pipeline,
          std::unique_ptr<RunFiles> files);

  bool IsOver() const;
  absl::Status Round();
  absl::Status CountEpisodes(const TensorDict& batch, int64_t first_frame);
  absl::Status Learn();
  absl::StatusOr<double> Evaluate(Env& env, int64_t episodes, uint32_t purpose);
  // A row for the curve, with the evaluations that belong to it.
  absl::Status AddRow(ProgressLine& progress);
  absl::Status Save();
  // Brings state_.times up to now.
  void UpdateTimes();
  Progress CurrentProgress();

  const std::string run_dir_;
  const std::atomic<bool>* stop_;
  const Clock& clock_;
  RunState state_;
  Pipeline pipeline_;
  std::unique_ptr<RunFiles> files_;
  TensorDict sample_;  // Its memory is reused.

  absl::Time start_;       // Of this session,
  Phases times_at_start_;  // and what earlier ones took.
  int64_t steps_at_start_ = 0;
};

// "solved: seed 7, 65536 steps, 1.9 s", or how else it ended: the last line of
// the program.
std::string FormatOutcome(Outcome outcome, const Trainer& trainer);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_TRAINER_H_
