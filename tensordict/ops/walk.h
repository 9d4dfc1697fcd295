// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_WALK_H_
#define RILL_TENSORDICT_OPS_WALK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

// All entries of dictionaries, of whatever kind, for the .cc files of this
// package.
namespace rill::ops_internal {

struct MapOptions {
  // The function gets their entries of the same keys too. Lazy stacks have as
  // many members, ragged tensors the same shapes.
  absl::Span<const TensorDict* const> others = {};
  // Takes the place of a tensor that one of `others` misses; else NOT_FOUND.
  std::optional<Tensor> if_missing = {};
  // NOT_FOUND for tensors of `others` that `dict` misses.
  bool same_keys = false;
  // The result's; the dictionary's own if unset.
  std::optional<Shape> batch_shape = {};
};
// fn(key, tensors) for the tensors of one key of `dict` and of `others`: a
// leaf, the leaf of each member of a lazy stack, the values of a ragged tensor.
// Its result stands there in the result; one that is not valid is left out (a
// ragged tensor's as a whole). Values without a shape are dict's; the device is
// unset. Entries with a shape of their own want the
// batch shape to stay. The calls' order is always the same. An error of `fn`
// gains caller and key.
absl::StatusOr<TensorDict> MapTensors(
    absl::string_view caller, const TensorDict& dict, const MapOptions& options,
    absl::FunctionRef<absl::StatusOr<Tensor>(absl::string_view key,
                                             absl::Span<const Tensor> tensors)>
        fn);

// Keys of all entries of these kinds, also of those inside lazy stacks.
std::vector<std::string> KeysOf(const TensorDict& dict,
                                absl::Span<const EntryKind> kinds);
// INVALID_ARGUMENT if there is one of these kinds, with its key.
absl::Status CheckNone(absl::string_view caller, const TensorDict& dict,
                       absl::Span<const EntryKind> kinds);

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_WALK_H_
