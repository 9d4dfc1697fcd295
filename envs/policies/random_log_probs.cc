// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/random_log_probs.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/specs/legal_choices.h"
#include "rill/specs/random_log_prob.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kCaller = "RandomLogProbs";

// "agents/" of "agents/log_prob".
absl::string_view GroupOf(absl::string_view key) {
  return key.substr(0, key.rfind('/') + 1);
}

template <typename T>
absl::Status Fill(absl::Span<const double> sums, const Tensor& to) {
  RILL_ASSIGN_OR_RETURN(const auto values, to.Flat<T>());
  std::transform(sums.begin(), sums.end(), values.begin(),
                 [](double sum) { return static_cast<T>(sum); });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RandomLogProbs> RandomLogProbs::Create(
    const EnvSpec& env, const TensorDictSpec& outputs) {
  RandomLogProbs result;
  result.env_ = env;
  for (const auto& [key, spec] : outputs.leaves()) {
    if (!IsLogProbKey(key)) continue;
    if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64) {
      return InvalidArgument(kCaller, ": \"", key, "\": got ", spec.ToString(),
                             ", want float32 or float64");
    }
    Output output = {.key = key, .spec = spec, .actions = {}};
    for (size_t i = 0; i < env.action.leaves().size(); ++i) {
      const TensorDictSpec::Leaf& action = env.action.leaves()[i];
      if (!absl::StartsWith(action.key, GroupOf(key))) continue;
      const int64_t parts = spec.shape.num_elements();
      if (parts < 1 || RandomDrawsPerLane(action.spec) % parts != 0) {
        return InvalidArgument(
            kCaller, ": \"", key, "\": got ", parts,
            " elements a lane, want a number that divides the ",
            RandomDrawsPerLane(action.spec), " of \"", action.key, "\", ",
            action.spec.ToString());
      }
      output.actions.push_back(i);
    }
    if (output.actions.empty()) {
      return InvalidArgument(kCaller, ": \"", key, "\": got no action below \"",
                             GroupOf(key), "\", want one that it can be of");
    }
    result.outputs_.push_back(std::move(output));
  }
  return result;
}

absl::Status RandomLogProbs::Write(const TensorDict& step,
                                   const Stream* stream) {
  const int64_t lanes = step.batch_shape().num_elements();
  for (const Output& output : outputs_) {
    const int64_t parts = output.spec.shape.num_elements();
    sums_.assign(static_cast<size_t>(lanes * parts), 0.0);
    for (const size_t i : output.actions) {
      const auto& [key, spec] = env_.action.leaves()[i];
      const LegalActions* const legal = FindLegalActions(env_, key);
      if (legal != nullptr) {
        RILL_ASSIGN_OR_RETURN(const Tensor mask,
                              OnHost(step, legal->mask, stream));
        const LegalChoices choices = {
            .key = key, .mask_key = legal->mask, .spec = spec, .mask = mask};
        RILL_RETURN_IF_ERROR(
            choices.AddLogProbs(kCaller, parts, absl::MakeSpan(sums_)));
        continue;
      }
      RILL_ASSIGN_OR_RETURN(const Tensor action, OnHost(step, key, stream));
      RILL_RETURN_IF_ERROR(AddRandomLogProbs(kCaller, spec, action, parts,
                                             absl::MakeSpan(sums_)));
    }
    RILL_ASSIGN_OR_RETURN(const Tensor to, step.Get(output.key));
    Tensor made = to;
    if (!to.is_host() || !to.is_contiguous()) {
      RILL_ASSIGN_OR_RETURN(made, output.spec.Zero(step.batch_shape()));
    }
    RILL_RETURN_IF_ERROR(output.spec.dtype == DType::kFloat32
                             ? Fill<float>(sums_, made)
                             : Fill<double>(sums_, made));
    if (made.raw_data() == to.raw_data()) continue;
    absl::Status copied;
    if (stream == nullptr || to.is_host()) {
      copied = to.CopyFrom(made);
    } else {
      copied = to.CopyFromAsync(made, *stream);
      copied.Update(stream->Synchronize());
    }
    RILL_RETURN_IF_ERROR(copied) << "in \"" << output.key << "\"";
  }
  return absl::OkStatus();
}

}  // namespace rill
