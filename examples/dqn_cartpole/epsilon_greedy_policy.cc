// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"

namespace rill::dqn_cartpole {
namespace {

constexpr int64_t kFeatures = DoubleDqn::kFeatures;
constexpr int64_t kActions = DoubleDqn::kActions;

}  // namespace

absl::Status ActGreedily(DoubleDqn& learner, const TensorDict& root,
                         Tensor* action) {
  RILL_ASSIGN_OR_RETURN(absl::Span<float> observation,
                        root.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> actions, action->Flat<int64_t>());
  if (observation.size() != actions.size() * kFeatures) {
    return InvalidArgument("ActGreedily: observation has ", observation.size(),
                           " values, want ", kFeatures, " for each of ",
                           actions.size(), " actions");
  }
  learner.GreedyActions(observation, actions);
  return absl::OkStatus();
}

EpsilonGreedyPolicy::EpsilonGreedyPolicy(DoubleDqn* learner,
                                         const Options& options)
    : learner_(learner), options_(options) {}

double EpsilonGreedyPolicy::EpsilonAt(int64_t frames) const {
  const double way =
      std::min(1.0, static_cast<double>(frames) /
                        static_cast<double>(options_.epsilon_frames));
  return 1 + (options_.final_epsilon - 1) * way;
}

absl::StatusOr<int64_t> EpsilonGreedyPolicy::Act(const TensorDict& root,
                                                 const ActContext& context,
                                                 TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(Tensor action, step->Get("action"));
  // For all lanes, also those that act at random: one call, whatever epsilon
  // is.
  RILL_RETURN_IF_ERROR(ActGreedily(*learner_, root, &action));
  if (!context.explore) return 0;
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> actions, action.Flat<int64_t>());
  const double epsilon = EpsilonAt(context.frames);
  const Rng rng(context.SeedOf(options_.seed), RngStream::kPolicy);
  for (size_t lane = 0; lane < actions.size(); ++lane) {
    // Two draws a lane: whether the action is random, and which.
    const uint32_t draw = static_cast<uint32_t>(2 * lane);
    if (rng.UniformDouble(context.step, draw) < epsilon) {
      actions[lane] = rng.UniformInt(context.step, draw + 1, kActions);
    }
  }
  return 0;
}

}  // namespace rill::dqn_cartpole
