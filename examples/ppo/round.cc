// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/round.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::ppo {

absl::Status Round::FillNextValues(const TensorDict& batch,
                                   ActorCritic<float>* networks) {
  RILL_ASSIGN_OR_RETURN(absl::Span<const bool> done,
                        batch.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(absl::Span<const float> next_observation,
                        batch.Flat<float>("next/observation"));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> next_value,
                        next_value_.Flat<float>());
  const int64_t steps = static_cast<int64_t>(done.size());
  const int64_t time = batch.batch_shape()[1];
  const int64_t inputs = networks->inputs();
  if (static_cast<int64_t>(next_observation.size()) != steps * inputs) {
    return InvalidArgument("Round::Fill: \"next/observation\": got ",
                           next_observation.size(), " values, want ", inputs,
                           " for each of ", steps, " steps");
  }
  ends_.clear();
  end_observation_.clear();
  for (int64_t i = 0; i < steps; ++i) {
    // The next state's value is that of the next row. Only behind an end, and
    // behind the batch, the critic has to be asked.
    if (!done[i] && (i + 1) % time != 0) {
      next_value[i] = batch_.value[i + 1];
      continue;
    }
    ends_.push_back(i);
    const float* row = next_observation.data() + i * inputs;
    end_observation_.insert(end_observation_.end(), row, row + inputs);
  }
  end_value_.resize(ends_.size());
  // One call for all of them. Terminated ones too: GAE does not look at theirs.
  networks->Values(end_observation_, absl::MakeSpan(end_value_));
  for (size_t i = 0; i < ends_.size(); ++i)
    next_value[ends_[i]] = end_value_[i];
  return absl::OkStatus();
}

absl::Status Round::FillAdvantages(const TensorDict& batch,
                                   const Options& options) {
  EstimatorSteps steps = {.next_value = next_value_};
  RILL_ASSIGN_OR_RETURN(steps.reward, batch.Get("next/reward"));
  RILL_ASSIGN_OR_RETURN(steps.value, batch.Get("state_value"));
  RILL_ASSIGN_OR_RETURN(steps.done, batch.Get("next/done"));
  RILL_ASSIGN_OR_RETURN(steps.terminated, batch.Get("next/terminated"));
  RILL_RETURN_IF_ERROR(
      GaeAdvantage(steps, options.gamma, options.gae_lambda, &advantages_));
  RILL_ASSIGN_OR_RETURN(batch_.advantage, advantages_.advantage.Flat<float>());
  RILL_ASSIGN_OR_RETURN(batch_.value_target,
                        advantages_.value_target.Flat<float>());
  return absl::OkStatus();
}

absl::Status Round::FillActions(const TensorDict& batch,
                                const ActionKind& kind) {
  if (!kind.is_discrete) {
    RILL_ASSIGN_OR_RETURN(batch_.action, batch.Flat<float>("drawn_action"));
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> action,
                        batch.Flat<int64_t>("action"));
  action_.assign(action.begin(), action.end());
  // As float: a batch has one type for both kinds of actions.
  batch_.action = action_;
  return absl::OkStatus();
}

absl::Status Round::Fill(const TensorDict& batch, const Options& options,
                         ActorCritic<float>* networks) {
  const Shape shape = batch.batch_shape().Concat(Shape{1});
  // The same in every round but the first.
  if (!(next_value_.shape() == shape)) {
    RILL_ASSIGN_OR_RETURN(next_value_, Tensor::Zeros(DType::kFloat32, shape));
  }
  RILL_ASSIGN_OR_RETURN(batch_.observation, batch.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(batch_.log_prob, batch.Flat<float>("log_prob"));
  RILL_ASSIGN_OR_RETURN(batch_.value, batch.Flat<float>("state_value"));
  RILL_RETURN_IF_ERROR(FillActions(batch, networks->kind()));
  RILL_RETURN_IF_ERROR(FillNextValues(batch, networks));
  return FillAdvantages(batch, options);
}

}  // namespace rill::ppo
