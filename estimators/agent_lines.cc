// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/agent_lines.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/group_ends.h"

namespace rill::estimators_internal {

int64_t NumAgents(absl::string_view key, const Shape& trailing) {
  const bool is_of_group =
      absl::StrContains(absl::StripPrefix(key, "next/"), '/');
  return is_of_group && trailing.rank() == 2 && trailing[1] == 1 ? trailing[0]
                                                                 : 0;
}

int64_t NumAgents(absl::string_view key, const TensorDict& batch) {
  const Tensor* const leaf = batch.Find(key);
  if (leaf == nullptr) return 0;
  return NumAgents(key, leaf->shape().Suffix(batch.batch_shape().rank()));
}

std::vector<std::string> WithEnds(std::vector<std::string> keys,
                                  absl::string_view done_key,
                                  const TensorDictSpec& rows) {
  for (std::string& end : transforms_internal::EndsOf(done_key, rows)) {
    keys.push_back(std::move(end));
  }
  return keys;
}

absl::StatusOr<TensorDict> LinesOfAgent(const TensorDict& batch,
                                        absl::Span<const std::string> keys,
                                        int64_t agents, int64_t agent) {
  const int dim = batch.batch_shape().rank();
  TensorDict lines = batch;
  for (const std::string& key : keys) {
    if (NumAgents(key, batch) != agents) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor own,
                          batch.Find(key)->Select(dim, agent));
    RILL_ASSIGN_OR_RETURN(Tensor line, own.Contiguous());
    RILL_RETURN_IF_ERROR(lines.Set(key, std::move(line)));
  }
  return lines;
}

absl::StatusOr<TensorDictSpec> SpecOfAgent(const TensorDictSpec& spec,
                                           absl::Span<const std::string> keys,
                                           int64_t agents) {
  TensorDictSpec lines = spec;
  if (agents == 0) return lines;
  for (const std::string& key : keys) {
    const LeafSpec* const leaf = spec.Find(key);
    if (leaf == nullptr || NumAgents(key, leaf->shape) != agents) continue;
    RILL_ASSIGN_OR_RETURN(LeafSpec line, leaf->Index(0));
    RILL_RETURN_IF_ERROR(lines.Set(key, std::move(line)));
  }
  return lines;
}

}  // namespace rill::estimators_internal
