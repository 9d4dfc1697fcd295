// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_KEYS_H_
#define RILL_TENSORDICT_OPS_KEYS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Operations on the keys of a dictionary. Results share bytes; entries of every
// kind are moved as they are, in their order unless it says so; a lazy stack is
// one entry. Keys are texts as in key.h.
//
// Errors: those of TensorDict's Select, Set, Rename and Delete.
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
// The inverse for the components of this level: "a.b" becomes "a/b", in
// dictionaries of this batch shape. INVALID_ARGUMENT names both keys where an
// entry would take another's place, and a component with an empty part.
absl::StatusOr<TensorDict> UnflattenKeys(const TensorDict& dict,
                                         absl::string_view separator = ".");

// For each set of keys a dictionary with these entries, and as the last one the
// rest. A key is taken by the first set that has it, so a second one misses it.
// NOT_FOUND if `strict` and a key is missing. Dictionaries that lose all their
// entries stay in the rest (FilterEmpty drops them).
absl::StatusOr<std::vector<TensorDict>> SplitKeys(
    const TensorDict& dict,
    absl::Span<const std::vector<absl::string_view>> key_sets,
    bool strict = true);
// Takes these entries out of `dict` and returns them; `dict` is unchanged after
// an error.
absl::StatusOr<TensorDict> Separate(TensorDict* dict,
                                    absl::Span<const absl::string_view> keys,
                                    bool strict = true);

// Without values that are no tensors (one for all rows or one a row), on all
// levels and in the members of lazy stacks.
absl::StatusOr<TensorDict> FilterNonTensor(const TensorDict& dict);
// Without dictionaries that hold nothing but empty dictionaries.
absl::StatusOr<TensorDict> FilterEmpty(const TensorDict& dict);

// A dictionary with the entries of `other` in place of (or beside) those of
// `dict`, nested ones merged; `dict` itself stays as it is.
absl::StatusOr<TensorDict> Replace(const TensorDict& dict,
                                   const TensorDict& other);
// The batch shape without entries; with `recurse`, the nested dictionaries.
absl::StatusOr<TensorDict> WithoutEntries(const TensorDict& dict,
                                          bool recurse = false);
// The keys of every level in the order of their texts' bytes.
absl::StatusOr<TensorDict> SortKeys(const TensorDict& dict);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_KEYS_H_
