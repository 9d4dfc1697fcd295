// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/learner.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/short_calls.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/weight_service.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/examples/distributed_dqn/learner_checkpoint.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/examples/dqn_cartpole/pipeline.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::distributed_dqn {
namespace {

using async_dqn::WeightsOf;
using dqn_cartpole::DoubleDqn;
using dqn_cartpole::EpsilonGreedyPolicy;

constexpr int64_t kBatchSize = 128;
constexpr int64_t kPublishEvery = 16;
constexpr absl::Duration kLookForRows = absl::Milliseconds(20);
constexpr int64_t kEvaluationEpisodes = 100;
constexpr int64_t kCheckpointEvery = 500;
// Versions rise over all starts: collectors take none that is older than
// theirs.
constexpr int64_t kVersionsAStart = int64_t{1} << 24;

// One update. False where there is no batch now.
absl::StatusOr<bool> LearnOnce(ShardedSampler& sampler, DoubleDqn* learner,
                               std::vector<float>* errors) {
  const absl::StatusOr<TensorDict> batch = sampler.Sample();
  if (absl::IsFailedPrecondition(batch.status())) {
    absl::SleepFor(kLookForRows);  // The shards have none yet.
    return false;
  }
  if (IsForNow(batch.status())) return false;
  RILL_RETURN_IF_ERROR(batch.status());
  RILL_RETURN_IF_ERROR(
      dqn_cartpole::LearnFrom(*batch, /*learning_rate=*/1e-3, learner, errors)
          .status());
  for (float& error : *errors) error = std::abs(error);
  const absl::Status updated = sampler.UpdatePriorities(*batch, *errors);
  if (!IsForNow(updated)) {
    RILL_RETURN_IF_ERROR(updated);
  }
  return true;
}

// As far as the last start came, where there was one.
absl::StatusOr<LearnerPosition> BeginStart(const std::string& directory,
                                           DoubleDqn* learner) {
  if (directory.empty()) return LearnerPosition{};
  RILL_ASSIGN_OR_RETURN(LearnerPosition position,
                        OpenLearner(directory, learner));
  // Saved before others see weights of it, so that the next one has others.
  ++position.starts;
  RILL_RETURN_IF_ERROR(SaveLearner(directory, position, *learner));
  return position;
}

}  // namespace

absl::StatusOr<LearnerReport> RunLearner(std::shared_ptr<Transport> transport,
                                         const LearnerOptions& options) {
  const std::unique_ptr<DoubleDqn> learner =
      dqn_cartpole::MakeLearner({.seed = static_cast<int64_t>(options.seed),
                                 .batch_size = kBatchSize,
                                 .evaluation_episodes = kEvaluationEpisodes});
  RILL_ASSIGN_OR_RETURN(
      LearnerPosition position,
      BeginStart(options.checkpoint_directory, learner.get()));
  const int64_t first_version = position.starts * kVersionsAStart;
  EpsilonGreedyPolicy greedy(learner.get(), {});
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<Env> evaluation,
                        MakeCartPole({.lanes = kEvaluationEpisodes}));
  RILL_ASSIGN_OR_RETURN(const TensorDict first, WeightsOf(*learner));
  RILL_ASSIGN_OR_RETURN(
      const auto store,
      WeightStore::Create({.weights = first, .version = first_version}));
  WeightService::Readers readers;
  RILL_ASSIGN_OR_RETURN(readers["policy"], store->OpenReader());
  RILL_ASSIGN_OR_RETURN(auto service,
                        WeightService::Create(std::move(readers)));
  RILL_ASSIGN_OR_RETURN(const auto server,
                        transport->Listen(options.address, std::move(service)));

  const auto say = [&](const std::string& line) {
    if (options.say != nullptr) options.say(line);
  };
  say(absl::StrCat("serving at ", server->address()));
  if (position.updates > 0) {
    say(absl::StrCat("goes on from update ", position.updates));
  }
  ShardedSampler::Options shards = {.batch_size = kBatchSize,
                                    .seed = options.seed};
  for (const std::string& shard : options.shards) {
    shards.shards.push_back(ShortCallsTo(transport, shard));
  }
  RILL_ASSIGN_OR_RETURN(const auto sampler, ShardedSampler::Create(shards));
  LearnerReport report = {.updates = position.updates};
  const auto save = [&]() -> absl::Status {
    if (options.checkpoint_directory.empty()) return absl::OkStatus();
    position.updates = report.updates;
    return SaveLearner(options.checkpoint_directory, position, *learner);
  };
  std::vector<float> errors;
  while (!*options.stop && !report.is_solved &&
         report.updates < options.max_updates) {
    RILL_ASSIGN_OR_RETURN(const bool has_learned,
                          LearnOnce(*sampler, learner.get(), &errors));
    if (!has_learned) continue;
    ++report.updates;
    if (report.updates % kPublishEvery == 0) {
      RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(*learner));
      RILL_RETURN_IF_ERROR(store->Publish(weights).status());
    }
    if (report.updates % kCheckpointEvery == 0) {
      RILL_RETURN_IF_ERROR(save());
    }
    if (report.updates % options.evaluate_every != 0) continue;
    RILL_ASSIGN_OR_RETURN(
        const EvaluateResult result,
        EvaluatePolicy(*evaluation, greedy,
                       {.episodes = kEvaluationEpisodes,
                        .seed = Rng(options.seed).Bits64(report.updates, 0)}));
    report.evaluation_return = result.mean_return;
    report.is_solved = result.mean_return >= options.solve_return;
    say(absl::StrFormat("updates %d  weights %d  return %.1f%s", report.updates,
                        store->version() - first_version, result.mean_return,
                        report.is_solved ? "  solved" : ""));
  }
  RILL_RETURN_IF_ERROR(save());
  report.samples = sampler->GetStats();
  return report;
}

}  // namespace rill::distributed_dqn
