// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/read_places.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"

namespace rill::storage_internal {
namespace {

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

void ReadPlaces::PassCaches(int64_t bytes) {
  // From here on the next batch has pushed this one out of the caches before it
  // is read, where several are used in turn. Copy and a pass over the batch
  // were measured together (docs/lab/2026-11-performance-notebook.md).
  constexpr int64_t kBatchBytes = int64_t{8} << 20;
  constexpr int64_t kRowBytes = int64_t{4} << 10;
  if (bytes < kBatchBytes) return;
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].past_caches = extents_[i].width >= kRowBytes &&
                            extents_[i].stride == extents_[i].width;
  }
}

// Leaves `leaves` unusable where they do not fit.
bool ReadPlaces::UseTensors(const Source& source, const Shape& batch_shape,
                            absl::Span<const size_t> numbers) {
  leaves.clear();
  extents_.clear();
  const ReuseRules rules = RulesToTakeRows(source.device);
  int64_t row_bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor* const tensor = tensors_[i];
    const size_t leaf = numbers.empty() ? i : numbers[i];
    const LeafSpec& want = source.spec.leaves()[leaf].spec;
    if (tensor == nullptr ||
        !MayReuse(*tensor, want.dtype, batch_shape, want.shape, rules) ||
        (source.table != nullptr && source.table->Holds(*tensor))) {
      return false;
    }
    const ByteExtent extent = ByteExtent::Of(*tensor, 1);
    leaves.push_back({leaf, tensor->raw_data(), extent.stride});
    extents_.push_back(extent);
    row_bytes += extent.width;
  }
  PassCaches(row_bytes * batch_shape[0]);
  return LieApart(extents_);
}

bool ReadPlaces::FindIn(const Source& source, const SpecTree& tree, int64_t n,
                        const TensorDict& out) {
  const Shape batch_shape = {n};
  return out.batch_shape() == batch_shape && tree.Find(out, &tensors_) &&
         UseTensors(source, batch_shape, {});
}

bool ReadPlaces::FindSomeIn(const Source& source, int64_t n,
                            const TensorDict& out) {
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape) ||
      out.num_leaves() != static_cast<int64_t>(numbers_.size())) {
    return false;
  }
  tensors_.clear();
  for (const size_t i : numbers_) {
    tensors_.push_back(out.Find(source.spec.leaves()[i].key));
  }
  return UseTensors(source, batch_shape, numbers_);
}

absl::Status ReadPlaces::Find(const RowTable& table, const SpecTree& tree,
                              int64_t n, const LeafKeys& keys,
                              const TensorDict* out) {
  return FindAll({table.spec(), table.device(), &table}, tree, n, keys, out);
}

absl::Status ReadPlaces::FindOnHost(const TensorDictSpec& spec,
                                    const SpecTree& tree, int64_t n,
                                    const LeafKeys& keys,
                                    const TensorDict* out) {
  return FindAll({spec, Device::Cpu()}, tree, n, keys, out);
}

absl::Status ReadPlaces::FindAll(const Source& source, const SpecTree& tree,
                                 int64_t n, const LeafKeys& keys,
                                 const TensorDict* out) {
  fresh.reset();
  if (keys) return FindSome(source, n, *keys, out);
  if (FindIn(source, tree, n, *out)) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(fresh,
                        source.spec.Empty({n}, RowMemory(source.device)));
  if (FindIn(source, tree, n, *fresh)) return absl::OkStatus();
  return absl::InternalError("Storage::Read: made an unfit batch");
}

absl::Status ReadPlaces::FindSome(const Source& source, int64_t n,
                                  absl::Span<const std::string> keys,
                                  const TensorDict* out) {
  RILL_RETURN_IF_ERROR(NumbersOf(source.spec, keys, &numbers_));
  if (FindSomeIn(source, n, *out)) return absl::OkStatus();
  TensorDictSpec some;
  for (const size_t i : numbers_) {
    const TensorDictSpec::Leaf& leaf = source.spec.leaves()[i];
    RILL_RETURN_IF_ERROR(some.Set(leaf.key, leaf.spec));
  }
  RILL_ASSIGN_OR_RETURN(fresh, some.Empty({n}, RowMemory(source.device)));
  if (FindSomeIn(source, n, *fresh)) return absl::OkStatus();
  return absl::InternalError("Storage::ReadLeaves: made an unfit batch");
}

void ReadPlaces::Finish(TensorDict* out) {
  if (fresh) *out = *std::exchange(fresh, std::nullopt);
}

}  // namespace rill::storage_internal
