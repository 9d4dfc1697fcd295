// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_GROUP_ENDS_H_
#define RILL_TRANSFORMS_ROWS_GROUP_ENDS_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::transforms_internal {

// Groups of agents may have episodes of their own (envs/env_spec.h), which end
// by flags beside their leaves: "next/agents/done" for "next/agents/reward".
// What makes one value of several steps asks here whose ends stop it.
// Thread-safety: pure functions.

// `done_key`, or where rows do not have it those of its parts that they have:
// "<..>/terminated" and "<..>/truncated" of "<..>/done".
std::vector<std::string> EndsOf(absl::string_view done_key,
                                const TensorDictSpec& rows);
// The same where `has` tells whether there is a leaf of a key. Short keys
// allocate nothing.
using EndKeys = absl::InlinedVector<std::string, 4>;
EndKeys EndsOf(absl::string_view done_key,
               absl::FunctionRef<bool(absl::string_view)> has);

// The ends of the innermost group of a leaf, at the root or below next, that
// has flags; none: it ends with the lane.
std::vector<std::string> GroupEndsOf(absl::string_view key,
                                     const TensorDictSpec& rows);

// INVALID_ARGUMENT where the group of `key` has flags of its own and stops at
// those of `done_key`, another's.
absl::Status CheckStopsAtGroupEnds(absl::string_view caller,
                                   absl::string_view key,
                                   absl::string_view done_key,
                                   const TensorDictSpec& rows);
// The same of a batch. Cost: none where `key` is of no group.
absl::Status CheckStopsAtGroupEnds(absl::string_view caller,
                                   absl::string_view key,
                                   absl::string_view done_key,
                                   const TensorDict& batch);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_GROUP_ENDS_H_
