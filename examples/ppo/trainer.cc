// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/trainer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/actor_critic.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/phase_times.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ppo {
namespace {

constexpr int64_t kWindow = 100;  // Episodes of the running mean.

// The steps of a batch with advantages as the learner reads them. Discrete
// actions go to `actions`, as float: there is one type for both kinds.
absl::StatusOr<PpoBatch<float>> ViewOf(const TensorDict& batch,
                                       const ActionKind& kind,
                                       std::vector<float>* actions) {
  PpoBatch<float> view;
  RILL_ASSIGN_OR_RETURN(view.observation, batch.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(view.log_prob, batch.Flat<float>("log_prob"));
  RILL_ASSIGN_OR_RETURN(view.value, batch.Flat<float>("state_value"));
  RILL_ASSIGN_OR_RETURN(view.advantage, batch.Flat<float>("advantage"));
  RILL_ASSIGN_OR_RETURN(view.value_target, batch.Flat<float>("value_target"));
  if (kind.is_discrete) {
    RILL_ASSIGN_OR_RETURN(const absl::Span<const int64_t> action,
                          batch.Flat<int64_t>("action"));
    actions->assign(action.begin(), action.end());
    view.action = *actions;
  } else {
    RILL_ASSIGN_OR_RETURN(view.action, batch.Flat<float>("drawn_action"));
  }
  return view;
}

}  // namespace

double TimeSplit::OverheadShare() const {
  const double training = total - evaluate;
  return training > 0 ? (training - policy - learn) / training : 0;
}

std::string FormatTimeSplit(const TimeSplit& split) {
  return absl::StrCat(
      FormatPhaseTimes({{"environment", split.environment},
                        {"policy", split.policy},
                        {"transforms", split.transforms},
                        {"advantages", split.advantages},
                        {"learn", split.learn},
                        {"evaluate", split.evaluate},
                        {"report", split.report}},
                       split.total),
      absl::StrFormat("without the evaluation, all but policy and learning "
                      "takes %.1f %%\n",
                      100 * split.OverheadShare()));
}

double RunResult::MeanReturn() const { return MeanOfLast(episodes, kWindow); }

Trainer::Trainer(const Options& options, Pipeline pipeline,
                 std::unique_ptr<RunFiles> files)
    : options_(options),
      pipeline_(std::move(pipeline)),
      files_(std::move(files)),
      start_(options.clock->Now()) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(ValidateConfig(options.config));
  RILL_ASSIGN_OR_RETURN(Pipeline pipeline,
                        MakePipeline(options.task, options.config));
  std::unique_ptr<RunFiles> files;
  if (!options.run_dir.empty()) {
    RILL_ASSIGN_OR_RETURN(files, RunFiles::Create(options.run_dir, RunColumns(),
                                                  options.date->Now()));
  }
  return std::unique_ptr<Trainer>(
      new Trainer(options, std::move(pipeline), std::move(files)));
}

double Trainer::Seconds() const {
  return absl::ToDoubleSeconds(options_.clock->Now() - start_);
}

double Trainer::LearningRate() const {
  const Config& config = options_.config;
  if (!config.anneal_learning_rate) return config.learning_rate;
  return config.learning_rate *
         (1 - static_cast<double>(result_.steps) /
                  static_cast<double>(config.total_steps));
}

absl::StatusOr<RunResult> Trainer::Run(ProgressLine& progress) {
  const Config& config = options_.config;
  while (result_.steps < config.total_steps) {
    // Between rounds only: a round is learned from as a whole.
    if (options_.stop != nullptr &&
        options_.stop->load(std::memory_order_relaxed)) {
      result_.was_interrupted = true;
      break;
    }
    const int64_t before = result_.steps;
    RILL_RETURN_IF_ERROR(DoRound());
    // A multiple of log_every lies in (before, now].
    if (result_.steps / config.log_every != before / config.log_every) {
      RILL_RETURN_IF_ERROR(AddRow());
    }
    const double seconds = Seconds();
    progress.Update(
        {.steps = result_.steps,
         .max_steps = config.total_steps,
         .episodes = static_cast<int64_t>(result_.episodes.size()),
         .mean_return = result_.MeanReturn(),
         .steps_per_second = seconds > 0 ? result_.steps / seconds : 0},
        options_.clock->Now());
  }
  if (!result_.was_interrupted) {
    RILL_RETURN_IF_ERROR(Evaluate());
  }
  if (files_ != nullptr) {
    PhaseTimer timer(*options_.clock, &result_.times.report);
    LearningCurve curve = {
        .title = absl::StrCat(options_.task.program, ", seed ", config.seed),
        .episodes = result_.episodes,
        .window = kWindow,
        .threshold = config.solve_return};
    if (!result_.was_interrupted) {
      curve.evaluations = {
          {static_cast<double>(result_.steps), result_.evaluation_return}};
    }
    RILL_RETURN_IF_ERROR(files_->WriteCurve(curve));
  }
  UpdateTimes();
  return result_;
}

// The advantages of a round are made before its update, with the networks that
// acted, and hold for all epochs.
absl::Status Trainer::DoRound() {
  RILL_ASSIGN_OR_RETURN(TensorDict batch, pipeline_.source->Next());
  absl::MutexLock lock(pipeline_.networks.get());
  // By the steps before this round: the first one has the whole rate.
  const double learning_rate = LearningRate();
  {
    PhaseTimer timer(*options_.clock, &result_.times.advantages);
    RILL_RETURN_IF_ERROR(CountEpisodes(batch, result_.steps));
    TensorDict no_state;
    RILL_RETURN_IF_ERROR(pipeline_.advantages->Forward(&batch, &no_state));
  }
  // Until the end of the function; the one above ends with its block.
  PhaseTimer timer(*options_.clock, &result_.times.learn);
  RILL_ASSIGN_OR_RETURN(
      const PpoBatch<float> steps,
      ViewOf(batch, pipeline_.learner->networks().kind(), &actions_));
  const PpoLearner::UpdateStats stats =
      pipeline_.learner->Update(steps, learning_rate);
  // Whole rounds: the last one may go beyond total_steps.
  result_.steps = pipeline_.source->frames();
  ++summed_;
  sums_.loss.policy_loss += stats.loss.policy_loss;
  sums_.loss.value_loss += stats.loss.value_loss;
  sums_.loss.entropy += stats.loss.entropy;
  sums_.loss.approx_kl += stats.loss.approx_kl;
  sums_.loss.clip_fraction += stats.loss.clip_fraction;
  sums_.gradient_norm += stats.gradient_norm;
  return absl::OkStatus();
}

absl::Status Trainer::CountEpisodes(const TensorDict& batch,
                                    int64_t first_step) {
  RILL_ASSIGN_OR_RETURN(absl::Span<const bool> done,
                        batch.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(absl::Span<const float> sum,
                        batch.Flat<float>("next/episode_reward"));
  const int64_t lanes = batch.batch_shape()[0];
  const int64_t time = batch.batch_shape()[1];
  // Step by step over all lanes, so that episodes come in the order of their
  // ends.
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t at = lane * time + t;
      if (!done[at]) continue;
      const int64_t step = first_step + (t + 1) * lanes;
      result_.episodes.push_back({static_cast<double>(step), sum[at]});
      if (result_.solved_at < 0 &&
          // A mean of fewer episodes would count luck at the beginning.
          static_cast<int64_t>(result_.episodes.size()) >= kWindow &&
          result_.MeanReturn() >= options_.config.solve_return) {
        result_.solved_at = step;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Trainer::AddRow() {
  PhaseTimer timer(*options_.clock, &result_.times.report);
  // A row comes behind a round, so there is one at least.
  const double share = 1.0 / static_cast<double>(summed_);
  RunRow row;
  row[kSteps] = static_cast<double>(result_.steps);
  row[kEpisodes] = static_cast<double>(result_.episodes.size());
  row[kMeanReturn] = result_.MeanReturn();
  // That of the next round.
  row[kLearningRate] = LearningRate();
  row[kPolicyLoss] = share * sums_.loss.policy_loss;
  row[kValueLoss] = share * sums_.loss.value_loss;
  row[kEntropy] = share * sums_.loss.entropy;
  row[kApproxKl] = share * sums_.loss.approx_kl;
  row[kClipFraction] = share * sums_.loss.clip_fraction;
  row[kGradientNorm] = share * sums_.gradient_norm;
  row[kSeconds] = Seconds();
  row[kStepsPerSecond] = row[kSteps] / std::max(row[kSeconds], 1e-9);
  sums_ = {};
  summed_ = 0;
  rows_.push_back(row);
  if (files_ == nullptr) return absl::OkStatus();
  return files_->Write(row.values, options_.date->Now());
}

absl::Status Trainer::Evaluate() {
  PhaseTimer timer(*options_.clock, &result_.times.evaluate);
  const Config& config = options_.config;
  // Taken now: the normalisation is that of all the run has seen.
  RILL_ASSIGN_OR_RETURN(const TensorDict states, pipeline_.transform_states());
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Env> env,
                        MakeEvaluationEnv(options_.task, config, states));
  // Episodes that the run has not seen.
  const uint64_t seed =
      Rng(static_cast<uint64_t>(config.seed), RngStream::kUser).Bits64(0, 0);
  RILL_ASSIGN_OR_RETURN(
      EvaluateResult result,
      EvaluatePolicy(*env, *pipeline_.policy,
                     {.episodes = config.evaluation_episodes, .seed = seed}));
  result_.evaluation_return = result.mean_return;
  return absl::OkStatus();
}

void Trainer::UpdateTimes() {
  const Source::Times& times = pipeline_.source->times();
  result_.times.environment = absl::ToDoubleSeconds(times.env);
  result_.times.policy = absl::ToDoubleSeconds(times.policy);
  result_.times.transforms = absl::ToDoubleSeconds(times.other);
  result_.times.total = Seconds();
}

}  // namespace rill::ppo
