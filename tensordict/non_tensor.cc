// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/non_tensor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Stores each text once. The map's keys are views of the texts that Add is
// given, which so have to outlive this. "null" is number 0, as MapIndex pads
// with it.
class Interner {
 public:
  int64_t Add(absl::string_view text) {
    const auto [at, is_new] = numbers_.try_emplace(text, numbers_.size());
    if (is_new) texts_.emplace_back(text);
    return static_cast<int64_t>(at->second);
  }
  std::vector<std::string> Take() { return std::move(texts_); }

 private:
  absl::flat_hash_map<absl::string_view, size_t> numbers_ = {{"null", 0}};
  std::vector<std::string> texts_ = {"null"};
};

// Elements of an index that MapIndex has checked, row-major.
absl::Span<const int64_t> Elements(const Tensor& contiguous) {
  return {contiguous.data<int64_t>(),
          static_cast<size_t>(contiguous.num_elements())};
}

// At least one part, a dimension that there is, and shapes that fit along it.
absl::Status CheckParts(absl::string_view caller,
                        absl::Span<const NonTensorStack> parts, int dim,
                        bool new_dim) {
  if (parts.empty()) {
    return InvalidArgument(caller, ": number of parts: got 0, want at least 1");
  }
  const Shape& want = parts[0].shape();
  const int limit =
      new_dim ? std::min(want.rank() + 1, Shape::kMaxRank) : want.rank();
  if (dim < 0 || dim >= limit) {
    return InvalidArgument(caller, ": dimension for shape ", want.ToString(),
                           ": got ", dim, ", want one in [0, ", limit,
                           ") and a rank of at most ", Shape::kMaxRank);
  }
  for (const NonTensorStack& part : parts) {
    const Shape& got = part.shape();
    bool same = got.rank() == want.rank();
    for (int d = 0; same && d < got.rank(); ++d) {
      same = got[d] == want[d] || (!new_dim && d == dim);
    }
    if (same) continue;
    return InvalidArgument(
        caller, ": shape: got ", got.ToString(), ", want ", want.ToString(),
        new_dim ? "" : absl::StrCat(" but for dimension ", dim));
  }
  return absl::OkStatus();
}

}  // namespace

NonTensorStack::NonTensorStack(Tensor index, std::shared_ptr<const Texts> texts)
    : index_(std::move(index)), texts_(std::move(texts)) {}

absl::StatusOr<NonTensorStack> NonTensorStack::Create(
    const Shape& shape, absl::Span<const std::string> values) {
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
    return InvalidArgument("NonTensorStack::Create: number of values: got ",
                           values.size(), ", want ", shape.num_elements(),
                           " of shape ", shape.ToString());
  }
  RILL_ASSIGN_OR_RETURN(Tensor index, Tensor::Empty(DType::kInt64, shape));
  Interner interner;
  for (size_t i = 0; i < values.size(); ++i) {
    index.data<int64_t>()[i] = interner.Add(values[i]);
  }
  return NonTensorStack(std::move(index),
                        std::make_shared<const Texts>(interner.Take()));
}

absl::StatusOr<NonTensorStack> NonTensorStack::Filled(const Shape& shape,
                                                      const NonTensor& value) {
  // One element whose index is repeated by strides of 0: O(1) for any shape.
  RILL_ASSIGN_OR_RETURN(const NonTensorStack one, Create({}, {value.json}));
  return one.MapIndex([&](const Tensor& index) { return index.Expand(shape); });
}

absl::StatusOr<NonTensor> NonTensorStack::At(int64_t flat) const {
  if (flat < 0 || flat >= size()) {
    return OutOfRange("NonTensorStack::At: index ", flat, " is outside [0, ",
                      size(), ") of shape ", shape().ToString());
  }
  // The index may be strided: the offset is computed dimension by dimension.
  int64_t offset = 0;
  for (int d = shape().rank() - 1; d >= 0; --d) {
    offset += flat % shape()[d] * index_.strides_bytes()[d];
    flat /= shape()[d];
  }
  return NonTensor{
      text(*reinterpret_cast<const int64_t*>(index_.raw_data() + offset))};
}

std::vector<std::string> NonTensorStack::values() const {
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) values.push_back(At(i)->json);
  return values;
}

absl::StatusOr<NonTensorStack> NonTensorStack::MapIndex(
    absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor& index)> fn) const {
  RILL_ASSIGN_OR_RETURN(Tensor index, fn(index_));
  if (index.dtype() != DType::kInt64 || !index.is_host()) {
    return InvalidArgument(
        "NonTensorStack::MapIndex: result: got ", DTypeName(index.dtype()),
        " on ", index.device().ToString(), ", want int64 on the host");
  }
  // A view shows indices that were there; a tensor of other bytes may hold any
  // number and is looked through.
  if (index.buffer() == index_.buffer()) {
    return NonTensorStack(std::move(index), texts_);
  }
  // Dense, so that one loop checks all elements.
  RILL_ASSIGN_OR_RETURN(index, index.Contiguous());
  for (const int64_t i : Elements(index)) {
    if (i >= 0 && i < static_cast<int64_t>(texts_->size())) continue;
    return InvalidArgument(
        "NonTensorStack::MapIndex: an index of the result: got ", i,
        ", want one that was there, or 0 for null");
  }
  return NonTensorStack(std::move(index), texts_);
}

absl::StatusOr<NonTensorStack> NonTensorStack::Gather(
    absl::Span<const int64_t> rows) const {
  if (shape().rank() == 0) {
    return InvalidArgument(
        "NonTensorStack::Gather: rank: got 0, want at least 1");
  }
  const Shape result =
      Shape({static_cast<int64_t>(rows.size())}).Concat(shape().Suffix(1));
  RILL_ASSIGN_OR_RETURN(Tensor index, Tensor::Empty(DType::kInt64, result));
  for (size_t i = 0; i < rows.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const Tensor from, index_.Index(rows[i]));
    RILL_ASSIGN_OR_RETURN(const Tensor to,
                          index.Index(static_cast<int64_t>(i)));
    RILL_RETURN_IF_ERROR(to.CopyFrom(from));
  }
  return NonTensorStack(std::move(index), texts_);
}

// Stack and Cat: the indices are copied to their places. Parts with other texts
// are numbered anew first, so that equal texts of different parts become one.
absl::StatusOr<NonTensorStack> NonTensorStack::Join(
    absl::Span<const NonTensorStack> parts, int dim, const Shape& shape) {
  const bool new_dim = shape.rank() > parts[0].shape().rank();
  RILL_ASSIGN_OR_RETURN(Tensor index, Tensor::Empty(DType::kInt64, shape));
  // Rows of one column share the texts, and so their numbers stay.
  bool share = true;
  for (const NonTensorStack& part : parts) {
    share = share && part.texts_ == parts[0].texts_;
  }
  Interner interner;
  int64_t at = 0;
  for (const NonTensorStack& part : parts) {
    RILL_ASSIGN_OR_RETURN(const Tensor place,
                          new_dim
                              ? index.Select(dim, at)
                              : index.Slice(dim, at, at + part.shape()[dim]));
    Tensor numbers = part.index_;
    // The part's own indices are shared with others and are not changed.
    if (!share) {
      RILL_ASSIGN_OR_RETURN(numbers, numbers.Clone());
      int64_t* const data = numbers.data<int64_t>();
      for (int64_t i = 0; i < numbers.num_elements(); ++i) {
        data[i] = interner.Add(part.text(data[i]));
      }
    }
    RILL_RETURN_IF_ERROR(place.CopyFrom(numbers));
    at += new_dim ? 1 : part.shape()[dim];
  }
  return NonTensorStack(
      std::move(index),
      share ? parts[0].texts_ : std::make_shared<const Texts>(interner.Take()));
}

absl::StatusOr<NonTensorStack> NonTensorStack::Stack(
    absl::Span<const NonTensorStack> parts, int dim) {
  RILL_RETURN_IF_ERROR(CheckParts("NonTensorStack::Stack", parts, dim, true));
  return Join(
      parts, dim,
      parts[0].shape().WithDim(dim, static_cast<int64_t>(parts.size())));
}

absl::StatusOr<NonTensorStack> NonTensorStack::Cat(
    absl::Span<const NonTensorStack> parts, int dim) {
  RILL_RETURN_IF_ERROR(CheckParts("NonTensorStack::Cat", parts, dim, false));
  int64_t size = 0;
  for (const NonTensorStack& part : parts) {
    if (__builtin_add_overflow(size, part.shape()[dim], &size)) {
      return InvalidArgument(
          "NonTensorStack::Cat: the sum of the sizes does not fit in int64");
    }
  }
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(parts[0].shape().WithSize(dim, size).sizes()));
  return Join(parts, dim, shape);
}

bool operator==(const NonTensorStack& a, const NonTensorStack& b) {
  // Equal texts may have different numbers.
  return a.shape() == b.shape() && a.values() == b.values();
}

std::string NonTensorStack::DebugString() const {
  constexpr int64_t kMaxValues = 10;
  std::string text = absl::StrCat(shape().ToString(), " {");
  for (int64_t i = 0; i < std::min(size(), kMaxValues); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", At(i)->json);
  }
  return absl::StrCat(text, size() > kMaxValues ? ", ...}" : "}");
}

}  // namespace rill
