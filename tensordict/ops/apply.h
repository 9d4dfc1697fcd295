// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_APPLY_H_
#define RILL_TENSORDICT_OPS_APPLY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Functions of leaves, on whole dictionaries and, if asked, by several threads.
//
// A function gets the leaf and, behind it, the leaves of the same key of
// `others`. The tensor that it returns gets the same key in the result, and
// must start with the batch shape. Tensor(), which is not valid, leaves the key
// out. Nested dictionaries and values without a shape are kept; the device is
// unset. From a lazy stack it gets the leaves of each member, from a ragged
// tensor the values. Those of `others` have the same members and shapes.
//
// Errors: the function's own, with the key; of several the one that comes first
//   in the order of the keys, whatever the threads do. NOT_FOUND for a key
//   that an other misses; INVALID_ARGUMENT for results that do not fit.
// Thread-safety: with num_threads > 1 the function is called by several threads
//   at once, and none is left when the call returns.
// Cost: O(leaves) beside the function; a thread is started for each of
//   num_threads - 1, about 20 us, so it wants leaves that are worth it.
//
// Example (ApplyTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       TensorDict doubles, Apply(dict, [](absl::Span<const Tensor> leaves) {
//         return Cast(leaves[0], DType::kFloat64);
//       }));
struct ApplyOptions {
  // Leaves of the same keys are given to the function too. Not owned.
  std::vector<const TensorDict*> others = {};
  // Takes the place of a leaf that one of `others` misses.
  std::optional<Tensor> if_missing = {};
  // The result's; the dictionary's own if unset.
  std::optional<Shape> batch_shape = {};
  // Drops dictionaries in which no leaf is left.
  bool filter_empty = false;
  // With the calling one; at most one a leaf is used.
  int num_threads = 1;
};

using LeafFunction =
    absl::FunctionRef<absl::StatusOr<Tensor>(absl::Span<const Tensor> leaves)>;
using NamedLeafFunction = absl::FunctionRef<absl::StatusOr<Tensor>(
    absl::string_view key, absl::Span<const Tensor> leaves)>;

absl::StatusOr<TensorDict> Apply(const TensorDict& dict, LeafFunction fn,
                                 const ApplyOptions& options = {});
absl::StatusOr<TensorDict> NamedApply(const TensorDict& dict,
                                      NamedLeafFunction fn,
                                      const ApplyOptions& options = {});
// Copies the results into the bytes of the dictionary's leaves, all or none:
// nothing is written if the function or a check of Tensor::CopyFrom fails.
// INVALID_ARGUMENT for options.batch_shape. A key that is left out stays.
absl::Status ApplyInPlace(const TensorDict& dict, LeafFunction fn,
                          const ApplyOptions& options = {});

struct MapOptions {
  int dim = 0;
  int64_t chunk_size = 1;
  int num_threads = 1;
};
// fn on parts of `chunk_size` rows of batch dimension `dim`, which share the
// dictionary's bytes, and the results joined along it (Cat). INVALID_ARGUMENT
// if there are none. Errors and threads as above, in the order of the parts.
absl::StatusOr<TensorDict> MapChunks(
    const TensorDict& dict,
    absl::FunctionRef<absl::StatusOr<TensorDict>(const TensorDict& part)> fn,
    const MapOptions& options = {});

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_APPLY_H_
