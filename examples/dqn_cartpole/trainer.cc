// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/dqn_cartpole/checkpoint.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/examples/dqn_cartpole/phases.h"
#include "rill/examples/dqn_cartpole/run_row.h"
#include "rill/examples/program/saved_log.h"
#include "rill/telemetry/phase_times.h"
#include "rill/tensors/tensor.h"

namespace rill::dqn_cartpole {
namespace {

// Whether a multiple of `period` lies in (before, now].
bool Passed(int64_t period, int64_t before, int64_t now) {
  return now / period != before / period;
}

std::string CheckpointPath(const std::string& run_dir) {
  return JoinPath(run_dir, "checkpoint");
}

}  // namespace

Trainer::Trainer(const Options& options, RunState state, Pipeline pipeline,
                 std::unique_ptr<RunFiles> files)
    : run_dir_(options.run_dir),
      stop_(options.stop),
      clock_(*options.clock),
      state_(std::move(state)),
      pipeline_(std::move(pipeline)),
      files_(std::move(files)),
      start_(clock_.Now()),
      times_at_start_(state_.times),
      steps_at_start_(state_.steps) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const Options& options) {
  if (options.resume) {
    // The folder is touched last: nothing is lost if the checkpoint is
    // broken.
    RILL_ASSIGN_OR_RETURN(LoadedCheckpoint loaded,
                          LoadCheckpoint(CheckpointPath(options.run_dir),
                                         options.config, options.given));
    RILL_ASSIGN_OR_RETURN(
        auto files, examples::LoadLog(loaded.log, options.run_dir, RunColumns(),
                                      &loaded.state.curve));
    RILL_RETURN_IF_ERROR(RemoveHalfWritten(options.run_dir));
    return std::unique_ptr<Trainer>(
        new Trainer(options, std::move(loaded.state),
                    std::move(loaded.pipeline), std::move(files)));
  }
  RILL_RETURN_IF_ERROR(ValidateConfig(options.config));
  RunState state;
  state.config = options.config;
  RILL_ASSIGN_OR_RETURN(Pipeline pipeline, MakePipeline(options.config));
  auto files =
      RunFiles::Create(options.run_dir, RunColumns(), options.clock->Now());
  RILL_RETURN_IF_ERROR(files.status())
      << "go on with --resume, or name another folder";
  return std::unique_ptr<Trainer>(new Trainer(
      options, std::move(state), std::move(pipeline), *std::move(files)));
}

bool Trainer::IsOver() const {
  return state_.solved || state_.steps >= state_.config.max_steps;
}

absl::StatusOr<Outcome> Trainer::Run(ProgressLine& progress) {
  const Config& config = state_.config;
  const auto stopped = [this] {
    return stop_ != nullptr && stop_->load(std::memory_order_relaxed);
  };
  if (state_.steps == 0) {
    // From here on there is something to resume, whatever happens.
    RILL_RETURN_IF_ERROR(Save());
  }
  while (!IsOver() && !stopped()) {
    const int64_t before = state_.steps;
    RILL_RETURN_IF_ERROR(Round());
    if (Passed(config.probe_every, before, state_.steps)) {
      RILL_RETURN_IF_ERROR(AddRow(progress));
    }
    if (Passed(config.checkpoint_every, before, state_.steps)) {
      RILL_RETURN_IF_ERROR(Save());
    }
    progress.Update(CurrentProgress(), clock_.Now());
  }
  RILL_RETURN_IF_ERROR(Save());
  UpdateTimes();
  if (state_.solved) return Outcome::kSolved;
  return IsOver() ? Outcome::kNotSolved : Outcome::kInterrupted;
}

absl::Status Trainer::Round() {
  const Config& config = state_.config;
  RILL_ASSIGN_OR_RETURN(TensorDict batch, pipeline_.collector->Next());
  RILL_RETURN_IF_ERROR(CountEpisodes(batch, state_.steps));
  {
    PhaseTimer timer(clock_, &state_.times.seconds[kWrite]);
    RILL_RETURN_IF_ERROR(pipeline_.replay->Write(batch, {}));
  }
  // Steps are the collector's frames, which are in its state as well: after a
  // resume both go on from one number.
  state_.steps = pipeline_.collector->frames();
  if (state_.steps < config.init_random_frames) return absl::OkStatus();
  for (int64_t i = 0; i < config.updates_per_batch; ++i) {
    RILL_RETURN_IF_ERROR(Learn());
  }
  return absl::OkStatus();
}

absl::Status Trainer::CountEpisodes(const TensorDict& batch,
                                    int64_t first_frame) {
  RILL_ASSIGN_OR_RETURN(absl::Span<bool> done, batch.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> sum,
                        batch.Flat<float>("next/episode_reward"));
  const int64_t lanes = batch.batch_shape()[0];
  const int64_t time = batch.batch_shape()[1];
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // Step by step over all lanes: episodes are logged in the order of their
      // ends.
      const int64_t at = lane * time + t;
      if (!done[at]) continue;
      state_.curve.episodes.push_back(
          {static_cast<double>(first_frame + (t + 1) * lanes), sum[at]});
    }
  }
  return absl::OkStatus();
}

absl::Status Trainer::Learn() {
  {
    PhaseTimer timer(clock_, &state_.times.seconds[kSample]);
    RILL_RETURN_IF_ERROR(pipeline_.replay->SampleInto(&sample_));
  }
  PhaseTimer timer(clock_, &state_.times.seconds[kLearn]);
  RILL_ASSIGN_OR_RETURN(
      DoubleDqn::UpdateStats stats,
      LearnFrom(sample_, state_.config.learning_rate, pipeline_.learner.get()));
  ++state_.updates;
  ++state_.summed_updates;
  state_.loss_sum += stats.loss;
  state_.value_sum += stats.mean_value;
  state_.gradient_norm_sum += stats.gradient_norm;
  return absl::OkStatus();
}

absl::StatusOr<double> Trainer::Evaluate(Env& env, int64_t episodes,
                                         uint32_t purpose) {
  PhaseTimer timer(clock_, &state_.times.seconds[kEvaluate]);
  // Fresh episodes each time: a new seed from the run's seed and its step.
  const Rng rng(state_.config.seed, RngStream::kUser);
  RILL_ASSIGN_OR_RETURN(
      EvaluateResult result,
      EvaluatePolicy(
          env, *pipeline_.policy,
          {.episodes = episodes, .seed = rng.Bits64(state_.steps, purpose)}));
  return result.mean_return;
}

absl::Status Trainer::AddRow(ProgressLine& progress) {
  const Config& config = state_.config;
  RunRow row;
  row[kSteps] = static_cast<double>(state_.steps);
  row[kEpisodes] = static_cast<double>(state_.curve.episodes.size());
  row[kUpdates] = static_cast<double>(state_.updates);
  // The collector draws random actions until then, and does not ask the policy.
  row[kEpsilon] = state_.steps < config.init_random_frames
                      ? 1.0
                      : pipeline_.policy->EpsilonAt(state_.steps);
  row[kMeanReturn] = state_.MeanReturn();
  const double updates = static_cast<double>(state_.summed_updates);
  if (updates > 0) {
    row[kLoss] = state_.loss_sum / updates;
    row[kMeanValue] = state_.value_sum / updates;
    row[kGradientNorm] = state_.gradient_norm_sum / updates;
  }
  // The sums go on over checkpoints (RunState), so a row is of the same updates
  // in a resumed run.
  state_.summed_updates = 0;
  state_.loss_sum = state_.value_sum = state_.gradient_norm_sum = 0;

  RILL_ASSIGN_OR_RETURN(
      row[kProbeReturn],
      Evaluate(*pipeline_.probe_env, config.probe_episodes, /*purpose=*/0));
  // Few episodes may be lucky, and the best of many probes often is: other
  // episodes decide.
  if (row[kProbeReturn] >= config.solve_return) {
    RILL_ASSIGN_OR_RETURN(
        row[kEvaluationReturn],
        Evaluate(*pipeline_.evaluation_env, config.evaluation_episodes,
                 /*purpose=*/1));
    state_.evaluation_return = row[kEvaluationReturn];
    state_.solved = row[kEvaluationReturn] >= config.solve_return;
    progress.Say(absl::StrFormat(
        "step %d: greedy evaluation of %d fresh episodes: mean return %.2f",
        state_.steps, config.evaluation_episodes, row[kEvaluationReturn]));
  }

  UpdateTimes();
  row[kSeconds] = state_.times.total_seconds;
  row[kStepsPerSecond] = (row[kSteps] - state_.row_steps) /
                         std::max(row[kSeconds] - state_.row_seconds, 1e-9);
  state_.row_steps = row[kSteps];
  state_.row_seconds = row[kSeconds];
  for (const Column column : {kProbeReturn, kEvaluationReturn}) {
    if (std::isnan(row[column])) continue;
    state_.curve.evaluations.push_back({row[kSteps], row[column]});
  }

  PhaseTimer timer(clock_, &state_.times.seconds[kSave]);
  return files_->Write(row.values, clock_.Now());
}

absl::Status Trainer::Save() {
  PhaseTimer timer(clock_, &state_.times.seconds[kSave]);
  UpdateTimes();
  RILL_ASSIGN_OR_RETURN(const TensorDict log,
                        examples::SaveLog(*files_, state_.curve));
  // The checkpoint comes first: it is what the rest can be made from again.
  RILL_RETURN_IF_ERROR(
      SaveCheckpoint(CheckpointPath(run_dir_), state_, log, pipeline_));
  state_.curve.title =
      absl::StrCat("CartPole-v1, double DQN, seed ", state_.config.seed);
  state_.curve.threshold = state_.config.solve_return;
  return files_->WriteCurve(state_.curve);
}

void Trainer::UpdateTimes() {
  state_.times.total_seconds = times_at_start_.total_seconds +
                               absl::ToDoubleSeconds(clock_.Now() - start_);
  const SyncCollector::Times& times = pipeline_.collector->times();
  const auto set = [this](Phase phase, absl::Duration spent) {
    state_.times.seconds[phase] =
        // The collector counts from its making, which is this session's
        // beginning.
        times_at_start_.seconds[phase] + absl::ToDoubleSeconds(spent);
  };
  set(kEnvironment, times.env);
  set(kPolicy, times.policy);
  set(kTransforms, times.other);
}

Progress Trainer::CurrentProgress() {
  // The mean of this session: one with earlier sessions would hide how fast it
  // goes at present.
  const double seconds = absl::ToDoubleSeconds(clock_.Now() - start_);
  return {.steps = state_.steps,
          .max_steps = state_.config.max_steps,
          .episodes = static_cast<int64_t>(state_.curve.episodes.size()),
          .mean_return = state_.MeanReturn(),
          .steps_per_second =
              seconds > 0 ? (state_.steps - steps_at_start_) / seconds : 0};
}

std::string FormatOutcome(Outcome outcome, const Trainer& trainer) {
  const RunState& state = trainer.state();
  const std::string where =
      absl::StrFormat("seed %d, %d steps, %.1f s", state.config.seed,
                      state.steps, state.times.total_seconds);
  switch (outcome) {
    case Outcome::kSolved:
      return "solved: " + where;
    case Outcome::kNotSolved:
      return absl::StrFormat(
          "not solved: %s; mean return of the last %d episodes %.1f, want an "
          "evaluation of %g",
          where, state.curve.window, state.MeanReturn(),
          state.config.solve_return);
    case Outcome::kInterrupted:
      return absl::StrFormat(
          "interrupted: %s; go on with --resume --run_dir=%s", where,
          trainer.run_dir());
  }
  return where;
}

}  // namespace rill::dqn_cartpole
