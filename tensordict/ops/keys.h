// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_KEYS_H_
#define RILL_TENSORDICT_OPS_KEYS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Operations on the keys of a dictionary. Results share bytes; entries of every
// kind are moved as they are, in their order; a lazy stack is one entry. Keys
// are texts as in key.h.
//
// Errors: those of TensorDict's Select, Set and Rename.
// Thread-safety: thread-safe for reading.
// Cost: O(entries) a level.
//
// Example (KeysTest.Example runs it):
//   // {"obs", "next": {"obs", "reward"}}
//   FlattenKeys(step);                  // {"obs", "next.obs", "next.reward"}
//   SplitKeys(step, {{"obs"}});         // {"obs"} and the rest

// One level: a nested entry's key becomes one component, its components joined
// by `separator`. Empty dictionaries are dropped. INVALID_ARGUMENT names both
// keys where two become one, or for an empty separator.
absl::StatusOr<TensorDict> FlattenKeys(const TensorDict& dict,
                                       absl::string_view separator = ".");

// For each set of keys a dictionary with these entries, and as the last one the
// rest. A key is taken by the first set that has it, so a second one misses it.
// NOT_FOUND if `strict` and a key is missing. Dictionaries that lose all their
// entries stay in the rest.
absl::StatusOr<std::vector<TensorDict>> SplitKeys(
    const TensorDict& dict,
    absl::Span<const std::vector<absl::string_view>> key_sets,
    bool strict = true);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_KEYS_H_
