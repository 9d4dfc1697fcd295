// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_POLICY_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

// The policy that docs/extending.md shows, with its weights from `weight`.
std::shared_ptr<rill::Policy> MakeLinearActorCritic(
    int64_t inputs, int64_t choices, int64_t options,
    const std::function<float()>& weight);

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_POLICY_H_
