// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/gru_policy.h"

#include <cstdint>

#include "absl/log/check.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill::ppo_recurrent {
namespace {

absl::Status CheckSize(const char* key, size_t got, int64_t lanes,
                       int64_t width) {
  if (static_cast<int64_t>(got) == lanes * width) return absl::OkStatus();
  return InvalidArgument("GruPolicy::Act: \"", key, "\": got ", got,
                         " values, want ", width, " for each of ", lanes,
                         " lanes");
}

}  // namespace

GruPolicy::GruPolicy(GruActorCritic<float>* networks, const int64_t* updates,
                     uint64_t seed)
    : networks_(networks), updates_(updates), seed_(seed) {
  for (const char* key : {"log_prob", "state_value"}) {
    CHECK_OK(outputs_.Set(key, LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  CHECK_OK(outputs_.Set("next/hidden",
                        LeafSpec::Bounded(DType::kFloat32, {networks->units()},
                                          /*low=*/-1, /*high=*/1)));
}

absl::StatusOr<int64_t> GruPolicy::Act(const TensorDict& root,
                                       const ActContext& context,
                                       TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(const auto observation,
                        root.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(const auto hidden, root.Flat<float>("hidden"));
  RILL_ASSIGN_OR_RETURN(const auto is_legal, root.Flat<bool>("action_mask"));
  RILL_ASSIGN_OR_RETURN(const auto action, step->Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(const auto log_prob, step->Flat<float>("log_prob"));
  RILL_ASSIGN_OR_RETURN(const auto value, step->Flat<float>("state_value"));
  RILL_ASSIGN_OR_RETURN(const auto next, step->Flat<float>("next/hidden"));
  const ppo::ActionKind& kind = networks_->kind();
  const int64_t lanes = static_cast<int64_t>(action.size());
  RILL_RETURN_IF_ERROR(
      CheckSize("observation", observation.size(), lanes, networks_->inputs()));
  RILL_RETURN_IF_ERROR(
      CheckSize("hidden", hidden.size(), lanes, networks_->units()));
  RILL_RETURN_IF_ERROR(
      CheckSize("action_mask", is_legal.size(), lanes, kind.size));
  logits_.resize(lanes * kind.size);
  networks_->Step(observation, hidden, is_legal, absl::MakeSpan(logits_), value,
                  next);
  const Rng rng(context.SeedOf(seed_), RngStream::kPolicy);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const auto logits =
        absl::MakeConstSpan(logits_).subspan(lane * kind.size, kind.size);
    float chosen = 0;
    if (context.explore) {
      ppo::SampleAction(kind, logits, {}, rng, context.step,
                        static_cast<uint32_t>(lane),
                        absl::MakeSpan(&chosen, 1));
    } else {
      ppo::BestAction(kind, logits, absl::MakeSpan(&chosen, 1));
    }
    action[lane] = static_cast<int64_t>(chosen);
    // By the function of the loss, so that the ratio of an unchanged network is
    // 1 but for rounding.
    log_prob[lane] = static_cast<float>(
        ppo::EvaluateAction<float>(kind, logits, {},
                                   absl::MakeConstSpan(&chosen, 1))
            .log_prob);
  }
  return *updates_;
}

}  // namespace rill::ppo_recurrent
