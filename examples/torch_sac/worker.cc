// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/worker.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/torch_threads.h"

namespace rill::torch_sac {
namespace {

TorchPolicy::Options PolicyOptions(const Task& task,
                                   std::shared_ptr<Actor> actor) {
  TorchPolicy::Options options;
  options.model = TorchModel::Of(std::move(actor));
  options.actions = TorchPolicy::Actions::kTanhNormal;
  options.bounds = task.bounds;
  // The learner draws actions anew.
  options.log_prob_key = "";
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(
    const Task& task, std::shared_ptr<Actor> actor) {
  return TorchPolicy::Create(PolicyOptions(task, std::move(actor)));
}

absl::StatusOr<WorkerParts> MakeWorker(const Task& task,
                                       const WorkerContext& context) {
  RILL_RETURN_IF_ERROR(SetTorchThreads(1));
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, task.make_env(/*lanes=*/1));
  auto actor = std::make_shared<Actor>(task.sizes);
  TorchPolicy::Options options = PolicyOptions(task, actor);
  RILL_ASSIGN_OR_RETURN(ModuleWeights weights, ModuleWeights::Of(*actor));
  options.load_weights = [weights = std::move(weights),
                          published = context.weights]() mutable {
    return weights.LoadLatest(*published);
  };
  RILL_ASSIGN_OR_RETURN(parts.policy, TorchPolicy::Create(std::move(options)));
  return parts;
}

}  // namespace rill::torch_sac
