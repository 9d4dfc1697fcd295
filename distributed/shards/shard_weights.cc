// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/shards/shard_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::shards_internal {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

constexpr absl::string_view kWeightKey = "priority_weight";

}  // namespace

absl::StatusOr<PriorityMass> MassOf(const SavedState& values) {
  const auto sum = values.Get<double>(kPrioritySum);
  if (!sum.ok()) {
    return FailedPrecondition(
        "table: got one without priorities on the host, want one with a "
        "prioritized sampler");
  }
  PriorityMass mass = {.sum = *sum};
  RILL_ASSIGN_OR_RETURN(mass.min, values.Get<double>(kPriorityMin));
  RILL_ASSIGN_OR_RETURN(mass.beta, values.Get<double>(kBeta));
  for (const double value : {mass.sum, mass.min, mass.beta}) {
    if (std::isfinite(value) && value >= 0) continue;
    return absl::DataLossError(
        absl::StrCat("priorities: got ", value, ", want finite numbers >= 0"));
  }
  return mass;
}

absl::Status Reweigh(double min, std::optional<double> beta, ShardPart* part) {
  const PriorityMass& mass = part->mass;
  const double wanted = beta.value_or(mass.beta);
  if (mass.beta == 0 && wanted > 0) {
    return FailedPrecondition("beta of the table: got 0, want > 0 for weights ",
                              "of beta ", wanted);
  }
  const double exponent = wanted > 0 ? wanted / mass.beta : 0;
  // Updates may have taken all priorities away since the draw.
  const double factor = mass.min > 0 ? std::pow(min / mass.min, wanted) : 1;
  RILL_ASSIGN_OR_RETURN(const auto weights, part->rows.Flat<float>(kWeightKey));
  std::vector<float> of_all;
  for (const float weight : weights) {
    // As a sampler's own: at most 1, and never 0.
    of_all.push_back(
        std::clamp(static_cast<float>(std::pow(weight, exponent) * factor),
                   std::numeric_limits<float>::min(), 1.0f));
  }
  RILL_ASSIGN_OR_RETURN(Tensor leaf,
                        Tensor::From(absl::MakeConstSpan(of_all),
                                     {static_cast<int64_t>(of_all.size())}));
  return part->rows.Set(kWeightKey, std::move(leaf));
}

}  // namespace rill::shards_internal
