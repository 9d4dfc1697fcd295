// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_KEY_PATHS_H_
#define RILL_TRANSFORMS_STRUCTURE_KEY_PATHS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::transforms_internal {

// How transforms of keys look at them. Thread-safety: thread-safe.

// "next/observation" is at or below "next" and "next/observation".
bool IsAtOrBelow(absl::string_view key, absl::string_view top);
bool IsAtOrBelowAny(absl::string_view key, absl::Span<const std::string> tops);

// "observation" of "next/observation" and of itself.
absl::string_view RootOf(absl::string_view key);
std::vector<std::string> RootsOf(absl::Span<const std::string> keys);

// The flags, the reward and the action, of the root and below next: what an
// environment's steps cannot do without.
bool IsFlag(absl::string_view key);
bool IsReward(absl::string_view key);
bool IsFixedInSteps(absl::string_view key);

// The leaves and other values whose keys `keeps` is true for.
TensorDictSpec KeptPart(const TensorDictSpec& spec,
                        absl::FunctionRef<bool(absl::string_view)> keeps);

// NOT_FOUND lists the keys there are, unless something is at or below `top`.
absl::Status CheckHas(absl::string_view caller, absl::string_view top,
                      const TensorDictSpec& spec);

// The same of the entry of a batch, a leaf or another.
absl::Status CheckHas(absl::string_view caller, absl::string_view key,
                      const TensorDict& batch);

// INVALID_ARGUMENT where an entry above `key` is neither a dictionary nor a
// LazyStack, whose members are not looked at.
absl::Status CheckNoLeafAbove(absl::string_view caller, absl::string_view key,
                              const TensorDict& batch);
// The same, and where a dictionary with entries is at `key`, which a leaf would
// replace.
absl::Status CheckMaySet(absl::string_view caller, absl::string_view key,
                         const TensorDict& batch);

// INVALID_ARGUMENT where one of `keys` is at or below another, so that the two
// cannot be leaves of one batch.
absl::Status CheckCanBeLeaves(absl::string_view caller,
                              absl::string_view option,
                              absl::Span<const std::string> keys);

// Drops the dictionaries around `key` that hold nothing, from the inside out,
// after the entry of that key has gone. No spec knows an empty dictionary.
// DeleteEntry deletes the entry first: NOT_FOUND where there is none.
absl::Status DropEmptyAround(absl::string_view key, TensorDict* batch);
absl::Status DeleteEntry(absl::string_view key, TensorDict* batch);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STRUCTURE_KEY_PATHS_H_
