// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/trainer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy_critic.h"
#include "rill/estimators/next_state_value.h"
#include "rill/estimators/value_estimators.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/storage/dense_storage.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/reward_sum.h"

namespace rill::ppo_recurrent {
namespace {

// Beside CleanRL's, whose PPO normalises advantages too.
constexpr double kMaxGradientNorm = 0.5;

absl::Status CheckConfig(const Config& config) {
  for (const auto& [name, value] :
       {std::pair{"lanes", config.lanes},
        {"steps_per_round", config.steps_per_round},
        {"total_steps", config.total_steps},
        {"units", config.units},
        {"sequence_length", config.sequence_length},
        {"epochs", config.epochs},
        {"minibatches", config.minibatches},
        {"evaluation_episodes", config.evaluation_episodes}}) {
    if (value < 1) {
      return InvalidArgument("Trainer::Create: ", name, ": got ", value,
                             ", want 1 or more");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(const Config& config) {
  const int64_t rows = config.lanes * config.steps_per_round;
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      DenseStorage::Create({.capacity = rows, .lanes = config.lanes}));
  RILL_ASSIGN_OR_RETURN(
      SampleUnit unit,
      MakeSequences({.sequences = {.length = config.sequence_length,
                                   .period = config.sequence_length}}));
  RILL_ASSIGN_OR_RETURN(auto sampler,
                        MakeSampler(MakeWithoutReplacementSelector(),
                                    std::move(unit), "SequencesOnce"));
  const int64_t sequences =
      std::max<int64_t>(rows / config.sequence_length / config.minibatches, 1);
  return ReplayBuffer::Create({.storage = std::move(storage),
                               .sampler = std::move(sampler),
                               .batch_size = sequences * config.sequence_length,
                               .seed = static_cast<uint64_t>(config.seed)});
}

}  // namespace

Trainer::Trainer(const Config& config)
    : config_(config),
      networks_(kRecallCues + 1, config.units, kRecallCues + 1),
      adam_(static_cast<int64_t>(networks_.parameters().size()),
            {.epsilon = 1e-5, .max_gradient_norm = kMaxGradientNorm}),
      gradient_(networks_.parameters().size()),
      policy_(&networks_, &updates_, static_cast<uint64_t>(config.seed)) {
  networks_.Initialize(
      Rng(static_cast<uint64_t>(config.seed), RngStream::kInit));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const Config& config) {
  RILL_RETURN_IF_ERROR(CheckConfig(config));
  std::unique_ptr<Trainer> trainer(new Trainer(config));
  RILL_RETURN_IF_ERROR(trainer->MakeParts());
  return trainer;
}

absl::Status Trainer::MakeParts() {
  SyncCollector::Options options = {
      .policy = &policy_,
      .frames_per_batch = rows_per_round(),
      .seed = static_cast<uint64_t>(config_.seed)};
  RILL_ASSIGN_OR_RETURN(options.env, MakeRecall({.lanes = config_.lanes}));
  const TensorDictSpec action = options.env->spec().action;
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        InitTracker::Create({}));
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(collector_, SyncCollector::Create(std::move(options)));

  // The critic is recurrent: it reads the state behind the step.
  RILL_ASSIGN_OR_RETURN(Critic critic, MakePolicyCritic(&policy_, action));
  std::vector<std::unique_ptr<BatchTransform>> advantages;
  RILL_ASSIGN_OR_RETURN(
      advantages.emplace_back(),
      NextStateValue::Create(
          {.critic = std::move(critic),
           .state_keys = {"observation", "action_mask", "hidden"}}));
  RILL_ASSIGN_OR_RETURN(
      advantages.emplace_back(),
      GAE::Create({.gamma = config_.gamma, .lmbda = config_.gae_lambda}));
  RILL_ASSIGN_OR_RETURN(advantages_, Compose::Create(std::move(advantages)));
  RILL_ASSIGN_OR_RETURN(buffer_, MakeBuffer(config_));
  return absl::OkStatus();
}

absl::StatusOr<Trainer::Round> Trainer::DoRound() {
  RILL_ASSIGN_OR_RETURN(batch_, collector_->Next());
  Round round = {.steps = collector_->frames()};
  RILL_ASSIGN_OR_RETURN(const auto done, batch_.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(const auto sum,
                        batch_.Flat<float>("next/episode_reward"));
  for (size_t i = 0; i < done.size(); ++i) {
    if (!done[i]) continue;
    ++round.episodes;
    round.mean_return += sum[i];
  }
  if (round.episodes > 0) round.mean_return /= round.episodes;

  TensorDict no_state;
  RILL_RETURN_IF_ERROR(advantages_->Forward(&batch_, &no_state));
  RILL_RETURN_IF_ERROR(buffer_->Extend(batch_).status());
  RILL_RETURN_IF_ERROR(Learn(&round));
  // The next round is of other weights.
  RILL_RETURN_IF_ERROR(buffer_->Clear());
  ++updates_;
  return round;
}

absl::Status Trainer::Learn(Round* round) {
  minibatches_ = 0;
  for (int64_t epoch = 0; epoch < config_.epochs; ++epoch) {
    round->sequences = 0;
    RILL_ASSIGN_OR_RETURN(const int64_t batches, buffer_->BatchesLeft());
    for (int64_t i = 0; i < batches; ++i) {
      RILL_ASSIGN_OR_RETURN(const TensorDict sample, buffer_->Sample());
      RILL_RETURN_IF_ERROR(LearnFrom(sample, round));
    }
  }
  const double share =
      1.0 / static_cast<double>(std::max<int64_t>(minibatches_, 1));
  for (double* mean : {&round->loss.loss, &round->loss.policy_loss,
                       &round->loss.value_loss, &round->loss.entropy,
                       &round->loss.approx_kl, &round->loss.clip_fraction}) {
    *mean *= share;
  }
  return absl::OkStatus();
}

absl::Status Trainer::LearnFrom(const TensorDict& sample, Round* round) {
  const int64_t length = config_.sequence_length;
  SequenceBatch<float> batch = {.sequences = sample.batch_shape()[0] / length,
                                .length = length};
  RILL_ASSIGN_OR_RETURN(batch.observation, sample.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(batch.is_init, sample.Flat<bool>("is_init"));
  RILL_ASSIGN_OR_RETURN(batch.is_legal, sample.Flat<bool>("action_mask"));
  RILL_ASSIGN_OR_RETURN(batch.action, sample.Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(batch.log_prob, sample.Flat<float>("log_prob"));
  RILL_ASSIGN_OR_RETURN(batch.value, sample.Flat<float>("state_value"));
  RILL_ASSIGN_OR_RETURN(batch.advantage, sample.Flat<float>("advantage"));
  RILL_ASSIGN_OR_RETURN(batch.value_target, sample.Flat<float>("value_target"));
  RILL_ASSIGN_OR_RETURN(batch.is_valid, sample.Flat<bool>("validity_mask"));
  RILL_ASSIGN_OR_RETURN(const auto hidden, sample.Flat<float>("hidden"));
  round->sequences += batch.sequences;
  // One step has no deviation to divide its advantage by.
  if (std::count(batch.is_valid.begin(), batch.is_valid.end(), true) < 2) {
    return absl::OkStatus();
  }
  hidden_.resize(batch.sequences * config_.units);
  for (int64_t s = 0; s < batch.sequences; ++s) {
    std::copy_n(hidden.begin() + s * length * config_.units, config_.units,
                hidden_.begin() + s * config_.units);
  }
  batch.hidden = hidden_;
  const ppo::PpoStats stats = networks_.Loss(
      batch, {.entropy_coefficient = config_.entropy_coefficient},
      absl::MakeSpan(gradient_));
  const double left = 1 - static_cast<double>(round->steps - rows_per_round()) /
                              static_cast<double>(config_.total_steps);
  adam_.Step(config_.learning_rate * std::max(left, 0.0), gradient_,
             networks_.parameters());
  ++minibatches_;
  round->loss.loss += stats.loss;
  round->loss.policy_loss += stats.policy_loss;
  round->loss.value_loss += stats.value_loss;
  round->loss.entropy += stats.entropy;
  round->loss.approx_kl += stats.approx_kl;
  round->loss.clip_fraction += stats.clip_fraction;
  return absl::OkStatus();
}

absl::StatusOr<double> Trainer::Evaluate() {
  RILL_ASSIGN_OR_RETURN(auto env, MakeRecall({.lanes = config_.lanes}));
  // Episodes that the run has not seen.
  const uint64_t seed =
      Rng(static_cast<uint64_t>(config_.seed), RngStream::kUser).Bits64(0, 0);
  RILL_ASSIGN_OR_RETURN(
      const EvaluateResult result,
      EvaluatePolicy(*env, policy_,
                     {.episodes = config_.evaluation_episodes, .seed = seed}));
  return result.mean_return;
}

}  // namespace rill::ppo_recurrent
