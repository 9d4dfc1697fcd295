// SPDX-License-Identifier: Apache-2.0
// TensorDictSpec: dictionaries made by it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/tensors/leaf_allocator.h"

namespace rill {

absl::Status TensorDictSpec::SetNonTensorsOf(TensorDict* dict) const {
  for (const NonTensorLeaf& leaf : non_tensors_) {
    RILL_RETURN_IF_ERROR(dict->Set(leaf.key, leaf.example));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TensorDictSpec::Random(const Shape& batch_shape,
                                                  const Rng& rng,
                                                  uint64_t batch) const {
  TensorDict dict(batch_shape);
  RILL_RETURN_IF_ERROR(RandomInto(batch_shape, rng, batch, &dict));
  return dict;
}

absl::Status TensorDictSpec::RandomInto(const Shape& batch_shape,
                                        const Rng& rng, uint64_t batch,
                                        TensorDict* out) const {
  if (out->batch_shape() != batch_shape) {
    return InvalidArgument(
        "TensorDictSpec::RandomInto: batch shape of out: got ",
        out->batch_shape().ToString(), ", want ", batch_shape.ToString());
  }
  for (size_t i = 0; i < leaves_.size(); ++i) {
    // A key of its own for each leaf, so that no two see the same numbers.
    const Rng leaf_rng(rng.Bits64(batch, static_cast<uint32_t>(i)),
                       RngStream::kSpec);
    // The tensor at `key` is used again; Set is needed only where another one
    // came.
    const Tensor* there = out->Find(leaves_[i].key);
    const std::byte* before = there == nullptr ? nullptr : there->raw_data();
    Tensor leaf = there == nullptr ? Tensor() : *there;
    RILL_RETURN_IF_ERROR(
        leaves_[i].spec.RandomInto(batch_shape, leaf_rng, 0, &leaf));
    if (before != nullptr && leaf.raw_data() == before) continue;
    RILL_RETURN_IF_ERROR(out->Set(leaves_[i].key, std::move(leaf)));
  }
  return SetNonTensorsOf(out);
}

absl::StatusOr<TensorDict> TensorDictSpec::Empty(
    const Shape& batch_shape, const Tensor::Options& options) const {
  using tensor_internal::LeafAllocator;
  // All leaves lie in one allocation, large ones too: a batch is made and freed
  // whole.
  LeafAllocator allocator(options, LeafAllocator::kShareAll);
  std::vector<Shape> shapes;
  shapes.reserve(leaves_.size());
  for (const Leaf& leaf : leaves_) {
    absl::StatusOr<Shape> shape = leaf.spec.FullShape(batch_shape);
    if (!shape.ok()) {
      return absl::Status(shape.status().code(),
                          absl::StrCat("TensorDictSpec: shape of \"", leaf.key,
                                       "\": ", shape.status().message()));
    }
    allocator.Plan(leaf.spec.dtype, *shape);
    shapes.push_back(*std::move(shape));
  }
  TensorDict dict(batch_shape);
  for (size_t i = 0; i < leaves_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          allocator.Make(leaves_[i].spec.dtype, shapes[i]));
    RILL_RETURN_IF_ERROR(dict.Set(leaves_[i].key, std::move(leaf)));
  }
  RILL_RETURN_IF_ERROR(SetNonTensorsOf(&dict));
  return dict;
}

absl::StatusOr<TensorDict> TensorDictSpec::Zero(
    const Shape& batch_shape) const {
  RILL_ASSIGN_OR_RETURN(TensorDict dict, Empty(batch_shape, {}));
  // Empty's tensors are contiguous and on the host.
  dict.ForEachLeaf([](absl::string_view, const Tensor& leaf) {
    std::fill_n(leaf.raw_data(), leaf.size_bytes(), std::byte{0});
  });
  return dict;
}

absl::StatusOr<TensorDict> TensorDictSpec::One(const Shape& batch_shape) const {
  TensorDict dict(batch_shape);
  for (const Leaf& leaf : leaves_) {
    RILL_ASSIGN_OR_RETURN(Tensor ones, leaf.spec.One(batch_shape));
    RILL_RETURN_IF_ERROR(dict.Set(leaf.key, std::move(ones)));
  }
  RILL_RETURN_IF_ERROR(SetNonTensorsOf(&dict));
  return dict;
}

absl::StatusOr<TensorDict> TensorDictSpec::Project(
    const TensorDict& dict) const {
  TensorDict result = dict;
  for (const Leaf& leaf : leaves_) {
    RILL_ASSIGN_OR_RETURN(const Tensor tensor, dict.Get(leaf.key));
    RILL_RETURN_IF_ERROR(
        leaf.spec.CheckLayout(leaf.key, dict.batch_shape(), tensor))
        << "in TensorDictSpec::Project";
    RILL_ASSIGN_OR_RETURN(Tensor projected, leaf.spec.Project(tensor));
    RILL_RETURN_IF_ERROR(result.Set(leaf.key, std::move(projected)));
  }
  return result;
}

std::optional<int64_t> TensorDictSpec::Cardinality() const {
  int64_t product = 1;
  for (const Leaf& leaf : leaves_) {
    const std::optional<int64_t> members = leaf.spec.Cardinality();
    if (!members.has_value() ||
        __builtin_mul_overflow(product, *members, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

absl::StatusOr<TensorDict> TensorDictSpec::Enumerate(
    int64_t max_members) const {
  const std::optional<int64_t> members = Cardinality();
  if (!members.has_value() || *members > max_members) {
    return InvalidArgument(
        "TensorDictSpec::Enumerate: members of ", ToString(), ": got ",
        members.has_value() ? absl::StrCat(*members) : "no finite number",
        ", want at most ", max_members);
  }
  TensorDict all({*members});
  // Members are counted as LeafSpec::Enumerate does: the last leaf changes
  // fastest.
  int64_t repeats = *members;  // Rows through which the leaf keeps its value.
  for (const Leaf& leaf : leaves_) {
    RILL_ASSIGN_OR_RETURN(const Tensor values,
                          leaf.spec.Enumerate(max_members));
    const int64_t n = values.shape()[0];
    repeats /= n;
    std::vector<int64_t> rows(static_cast<size_t>(*members));
    for (int64_t i = 0; i < *members; ++i) rows[i] = i / repeats % n;
    TensorDict one({n});
    RILL_RETURN_IF_ERROR(one.Set(leaf.key, values));
    RILL_ASSIGN_OR_RETURN(one, one.Gather(rows));
    RILL_RETURN_IF_ERROR(all.Update(one));
  }
  RILL_RETURN_IF_ERROR(SetNonTensorsOf(&all));
  return all;
}

}  // namespace rill
