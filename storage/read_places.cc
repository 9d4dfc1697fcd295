// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/read_places.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {
namespace {

// The array for leaf `leaf`, where the tensor can be it.
bool AddPlace(const RowTable& table, size_t leaf, const Tensor* tensor,
              std::vector<LeafBatch>* places) {
  if (tensor == nullptr ||
      !CanTakeRows(table.spec().leaves()[leaf].spec, table.device(), *tensor) ||
      table.Holds(*tensor)) {
    return false;
  }
  places->push_back(
      {leaf, tensor->raw_data(), table.layout().leaf_bytes(leaf)});
  return true;
}

// One contiguous array a leaf. Leaves `places` unusable where `out` does not
// fit.
bool FindIn(const RowTable& table, const SpecTree& tree, int64_t n,
            const TensorDict& out, std::vector<LeafBatch>* places) {
  thread_local std::vector<const Tensor*> tensors;
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape) || !tree.Find(out, &tensors)) {
    return false;
  }
  places->clear();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!AddPlace(table, i, tensors[i], places)) return false;
  }
  return true;
}

bool FindSomeIn(const RowTable& table, int64_t n,
                absl::Span<const size_t> leaves, const TensorDict& out,
                std::vector<LeafBatch>* places) {
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape) ||
      out.num_leaves() != static_cast<int64_t>(leaves.size())) {
    return false;
  }
  places->clear();
  for (const size_t i : leaves) {
    const std::string& key = table.spec().leaves()[i].key;
    if (!AddPlace(table, i, out.Find(key), places)) return false;
  }
  return true;
}

absl::Status NumbersOf(const TensorDictSpec& spec,
                       absl::Span<const std::string> keys,
                       std::vector<size_t>* numbers) {
  numbers->clear();
  const auto& leaves = spec.leaves();
  for (const std::string& key : keys) {
    size_t i = 0;
    while (i < leaves.size() && leaves[i].key != key) ++i;
    if (i == leaves.size()) {
      return absl::NotFoundError(absl::StrCat(
          "Storage::ReadLeaves: keys: got \"", key, "\", want some of {",
          absl::StrJoin(
              leaves, ", ",
              [](std::string* text, const TensorDictSpec::Leaf& leaf) {
                text->append(leaf.key);
              }),
          "}"));
    }
    if (std::find(numbers->begin(), numbers->end(), i) != numbers->end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Storage::ReadLeaves: keys: got \"", key, "\" twice, want it once"));
    }
    numbers->push_back(i);
  }
  return absl::OkStatus();
}

}  // namespace

ReadPlaces& ReadPlaces::OfThread() {
  thread_local ReadPlaces places;
  return places;
}

absl::Status ReadPlaces::Find(const RowTable& table, const SpecTree& tree,
                              int64_t n, const LeafKeys& keys,
                              const TensorDict* out) {
  fresh.reset();
  if (keys) return FindSome(table, n, *keys, out);
  if (FindIn(table, tree, n, *out, &leaves)) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(fresh,
                        table.spec().Empty({n}, RowMemory(table.device())));
  if (FindIn(table, tree, n, *fresh, &leaves)) return absl::OkStatus();
  return absl::InternalError("Storage::Read: made an unfit batch");
}

absl::Status ReadPlaces::FindSome(const RowTable& table, int64_t n,
                                  absl::Span<const std::string> keys,
                                  const TensorDict* out) {
  RILL_RETURN_IF_ERROR(NumbersOf(table.spec(), keys, &numbers_));
  if (FindSomeIn(table, n, numbers_, *out, &leaves)) return absl::OkStatus();
  TensorDictSpec some;
  for (const size_t i : numbers_) {
    const TensorDictSpec::Leaf& leaf = table.spec().leaves()[i];
    RILL_RETURN_IF_ERROR(some.Set(leaf.key, leaf.spec));
  }
  RILL_ASSIGN_OR_RETURN(fresh, some.Empty({n}, RowMemory(table.device())));
  if (FindSomeIn(table, n, numbers_, *fresh, &leaves)) return absl::OkStatus();
  return absl::InternalError("Storage::ReadLeaves: made an unfit batch");
}

void ReadPlaces::Finish(TensorDict* out) {
  if (fresh) *out = *std::exchange(fresh, std::nullopt);
}

}  // namespace rill::storage_internal
