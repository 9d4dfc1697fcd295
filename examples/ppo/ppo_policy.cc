// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/ppo_policy.h"

#include <algorithm>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/actor_critic.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill::ppo {

PpoPolicy::PpoPolicy(PpoLearner* learner, uint64_t seed)
    : learner_(learner), seed_(seed) {
  for (const char* key : {"log_prob", "state_value"}) {
    CHECK_OK(outputs_.Set(key, LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  const ActionKind& kind = learner->networks().kind();
  if (!kind.is_discrete) {
    CHECK_OK(outputs_.Set("drawn_action",
                          LeafSpec::Unbounded(DType::kFloat32, {kind.size})));
  }
}

absl::StatusOr<int64_t> PpoPolicy::Act(const TensorDict& root,
                                       const ActContext& context,
                                       TensorDict* step) {
  ActorCritic<float>& networks = learner_->networks();
  const ActionKind& kind = networks.kind();
  RILL_ASSIGN_OR_RETURN(absl::Span<const float> observation,
                        root.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> log_prob,
                        step->Flat<float>("log_prob"));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> value,
                        step->Flat<float>("state_value"));
  const int64_t lanes = static_cast<int64_t>(value.size());
  const int64_t width = kind.action_size();
  if (static_cast<int64_t>(observation.size()) != lanes * networks.inputs()) {
    return InvalidArgument("PpoPolicy::Act: \"observation\": got ",
                           observation.size(), " values, want ",
                           networks.inputs(), " for each of ", lanes, " lanes");
  }
  // An evaluation has other lanes than the collector.
  heads_.resize(lanes * kind.size);
  actions_.resize(lanes * width);
  networks.Act(observation, absl::MakeSpan(heads_));
  networks.Values(observation, value);
  const Rng rng(context.SeedOf(seed_), RngStream::kPolicy);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const auto head =
        absl::MakeConstSpan(heads_).subspan(lane * kind.size, kind.size);
    const auto action = absl::MakeSpan(actions_).subspan(lane * width, width);
    if (context.explore) {
      // Numbered by step and element: a lane's draws are its own.
      SampleAction(kind, head, networks.log_std(), rng, context.step,
                   static_cast<uint32_t>(lane * width), action);
    } else {
      BestAction(kind, head, action);
    }
    // By the function of the loss, so that the ratio of an unchanged network is
    // 1 but for rounding.
    log_prob[lane] = static_cast<float>(
        EvaluateAction<float>(kind, head, networks.log_std(), action).log_prob);
  }
  if (kind.is_discrete) {
    RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> to,
                          step->Flat<int64_t>("action"));
    std::copy(actions_.begin(), actions_.end(), to.begin());
  } else {
    RILL_ASSIGN_OR_RETURN(absl::Span<float> drawn,
                          step->Flat<float>("drawn_action"));
    RILL_ASSIGN_OR_RETURN(absl::Span<float> to, step->Flat<float>("action"));
    // The ratio of probabilities is of what was drawn. The environment gets it
    // inside the bounds.
    std::copy(actions_.begin(), actions_.end(), drawn.begin());
    std::transform(actions_.begin(), actions_.end(), to.begin(),
                   [&kind](float action) {
                     return std::clamp(action, static_cast<float>(kind.low),
                                       static_cast<float>(kind.high));
                   });
  }
  return learner_->updates();
}

}  // namespace rill::ppo
