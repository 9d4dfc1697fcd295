// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_AGENT_LINES_H_
#define RILL_ESTIMATORS_AGENT_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::estimators_internal {

// A group of several agents has a number a step for each: leaves [*B, T,
// agents, 1] in place of [*B, T, 1]. Arithmetic along time takes them agent by
// agent.
// Thread-safety: pure functions.

// The agents that a leaf has numbers of, from its shape behind the batch's; 0:
// it is no leaf of several agents. Those lie in a group; at the root a
// dimension more is likely time, which the batch's shape leaves out.
int64_t NumAgents(absl::string_view key, const Shape& trailing);
// The same of a batch's leaf; 0 where there is none.
int64_t NumAgents(absl::string_view key, const TensorDict& batch);

// `keys`, and what a batch may have in place of `done_key` (EndsOf).
std::vector<std::string> WithEnds(std::vector<std::string> keys,
                                  absl::string_view done_key,
                                  const TensorDictSpec& rows);

// The batch as one agent has it: leaves of `keys` that have numbers of `agents`
// agents are [*B, T, 1]. Others stay, as the flags of a lane.
// Cost: a copy of these leaves.
absl::StatusOr<TensorDict> LinesOfAgent(const TensorDict& batch,
                                        absl::Span<const std::string> keys,
                                        int64_t agents, int64_t agent);
// Its spec, which is every agent's; with 0 agents `spec` itself.
absl::StatusOr<TensorDictSpec> SpecOfAgent(const TensorDictSpec& spec,
                                           absl::Span<const std::string> keys,
                                           int64_t agents);

}  // namespace rill::estimators_internal

#endif  // RILL_ESTIMATORS_AGENT_LINES_H_
