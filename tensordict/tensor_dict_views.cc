// SPDX-License-Identifier: Apache-2.0
// TensorDict's shape and key operations; results share bytes.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using tensor_internal::EntryPath;
using tensor_internal::ShapeOp;

absl::Status CheckBatchDim(absl::string_view caller, const Shape& batch_shape,
                           int dim) {
  if (dim >= 0 && dim < batch_shape.rank()) return absl::OkStatus();
  return InvalidArgument(caller, ": batch dimension of batch shape ",
                         batch_shape.ToString(), ": got ", dim,
                         ", want one in [0, ", batch_shape.rank(), ")");
}

}  // namespace

// Copies the entry `key` of `from` to the same place of `to`; the dictionaries
// on the way keep their batch shapes. False where there is none.
bool TensorDict::Internal::CopyEntry(const TensorDict& from,
                                     absl::string_view key, TensorDict* to) {
  absl::string_view head, rest;
  SplitKeyHead(key, &head, &rest);
  const Entry* source = FindHere(from, head);
  if (source == nullptr) return false;
  Entry* target = const_cast<Entry*>(FindHere(*to, head));
  if (head.size() == key.size()) {
    if (target == nullptr) {
      to->entries_.push_back(*source);
    } else {
      target->value = Entry::CopyOf(source->value);
    }
    return true;
  }
  const TensorDict* nested = source->dict();
  if (nested == nullptr) return false;
  if (target != nullptr) return CopyEntry(*nested, rest, target->dict());
  // A dictionary of the same batch shape, device and names, with this entry
  // alone.
  auto made = std::make_unique<TensorDict>(nested->EmptyLike());
  if (!CopyEntry(*nested, rest, made.get())) return false;
  to->entries_.emplace_back(head, std::move(made));
  return true;
}

absl::StatusOr<TensorDict> TensorDict::Select(
    absl::Span<const absl::string_view> keys, bool strict) const {
  TensorDict result = EmptyLike();
  for (const absl::string_view key : keys) {
    RILL_RETURN_IF_ERROR(CheckKey(key));
    if (!Internal::CopyEntry(*this, key, &result) && strict) {
      return Internal::MissingKey(*this, "TensorDict::Select", key);
    }
  }
  return result;
}

absl::StatusOr<TensorDict> TensorDict::Exclude(
    absl::Span<const absl::string_view> keys) const {
  TensorDict result = *this;
  for (const absl::string_view key : keys) {
    RILL_RETURN_IF_ERROR(CheckKey(key));
    if (!result.Contains(key)) continue;
    RILL_RETURN_IF_ERROR(result.Delete(key));
  }
  return result;
}

TensorDict TensorDict::EmptyLike(bool recurse) const {
  TensorDict result(batch_shape_);
  result.device_ = device_;
  result.dim_names_ = dim_names_;
  for (const Entry& entry : entries_) {
    if (recurse && entry.dict() != nullptr) {
      result.entries_.emplace_back(
          entry.name,
          std::make_unique<TensorDict>(entry.dict()->EmptyLike(true)));
    }
  }
  return result;
}

absl::StatusOr<TensorDict> TensorDict::Index(int64_t index) const {
  return SelectDim(0, index);
}

absl::StatusOr<TensorDict> TensorDict::SelectDim(int dim, int64_t index) const {
  RILL_RETURN_IF_ERROR(
      CheckBatchDim("TensorDict::SelectDim", batch_shape_, dim));
  if (index < 0 || index >= batch_shape_[dim]) {
    return OutOfRange("TensorDict::SelectDim: index ", index,
                      " is outside [0, ", batch_shape_[dim], ") in dimension ",
                      dim, " of batch shape ", batch_shape_.ToString());
  }
  return Internal::Map(
      *this,
      {ShapeOp::kSelect, batch_shape_.WithoutDim(dim), batch_shape_.rank(), dim,
       index},
      [=](const Tensor& leaf, auto&) { return leaf.Select(dim, index); });
}

absl::StatusOr<TensorDict> TensorDict::Slice(int dim, int64_t begin,
                                             int64_t end) const {
  RILL_RETURN_IF_ERROR(CheckBatchDim("TensorDict::Slice", batch_shape_, dim));
  if (begin < 0 || begin > end || end > batch_shape_[dim]) {
    return OutOfRange("TensorDict::Slice: [", begin, ", ", end,
                      ") is not inside [0, ", batch_shape_[dim],
                      ") in dimension ", dim, " of batch shape ",
                      batch_shape_.ToString());
  }
  return Internal::Map(
      *this,
      {ShapeOp::kSlice, batch_shape_.WithSize(dim, end - begin),
       batch_shape_.rank(), dim, begin, end},
      [=](const Tensor& leaf, auto&) { return leaf.Slice(dim, begin, end); });
}

absl::StatusOr<TensorDict> TensorDict::Squeeze(int dim) const {
  RILL_RETURN_IF_ERROR(CheckBatchDim("TensorDict::Squeeze", batch_shape_, dim));
  if (batch_shape_[dim] != 1) {
    return InvalidArgument("TensorDict::Squeeze: size of dimension ", dim,
                           " of batch shape ", batch_shape_.ToString(),
                           ": got ", batch_shape_[dim], ", want 1");
  }
  return SelectDim(dim, 0);
}

absl::StatusOr<TensorDict> TensorDict::Unsqueeze(int dim) const {
  if (dim < 0 || dim > batch_shape_.rank() ||
      batch_shape_.rank() == Shape::kMaxRank) {
    return InvalidArgument(
        "TensorDict::Unsqueeze: new dimension of batch shape ",
        batch_shape_.ToString(), ": got ", dim, ", want one in [0, ",
        batch_shape_.rank(), "] and a rank of at most ", Shape::kMaxRank);
  }
  return Internal::Map(
      *this,
      {ShapeOp::kUnsqueeze, batch_shape_.WithDim(dim, 1), batch_shape_.rank(),
       dim},
      [=](const Tensor& leaf, auto&) { return leaf.Unsqueeze(dim); });
}

absl::StatusOr<TensorDict> TensorDict::Reshape(const Shape& batch_shape) const {
  if (batch_shape.num_elements() != batch_shape_.num_elements()) {
    return InvalidArgument("TensorDict::Reshape: number of rows: got ",
                           batch_shape.num_elements(), " of batch shape ",
                           batch_shape.ToString(), ", want ",
                           batch_shape_.num_elements(), " of batch shape ",
                           batch_shape_.ToString());
  }
  if (batch_shape == batch_shape_) return *this;
  const int old_rank = batch_shape_.rank();
  return Internal::Map(
      *this, {ShapeOp::kOpaque, batch_shape, old_rank},
      [&](const Tensor& leaf, auto&) -> absl::StatusOr<Tensor> {
        const Shape tail = leaf.shape().Suffix(old_rank);
        if (batch_shape.rank() + tail.rank() > Shape::kMaxRank) {
          return InvalidArgument("TensorDict::Reshape: rank of ",
                                 batch_shape.ToString(), " and ",
                                 tail.ToString(), " joined: got ",
                                 batch_shape.rank() + tail.rank(),
                                 ", want at most ", Shape::kMaxRank);
        }
        // A view where strides allow it, else a copy of the leaf.
        return leaf.Reshape(batch_shape.Concat(tail));
      });
}

absl::Status TensorDict::Internal::CheckMapped(const TensorDict& result,
                                               const Tensor& leaf,
                                               const Path& path) {
  if (leaf.shape().StartsWith(result.batch_shape_)) return absl::OkStatus();
  return WithKey(InvalidArgument("TensorDict: shape of a result: got ",
                                 leaf.shape().ToString(),
                                 ", want one that starts with the batch shape ",
                                 result.batch_shape_.ToString()),
                 path);
}

absl::StatusOr<TensorDict> TensorDict::MapShape(
    const Shape& batch_shape,
    absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn) const {
  return Internal::Map(*this,
                       {.kind = ShapeOp::kOpaque,
                        .prefix = batch_shape,
                        .old_rank = batch_shape_.rank(),
                        .checked = true},
                       [&](const Tensor& leaf, auto&) { return fn(leaf); });
}

absl::StatusOr<TensorDict> TensorDict::Apply(
    absl::FunctionRef<absl::StatusOr<Tensor>(absl::string_view key,
                                             const Tensor&)>
        fn) const {
  return Internal::Map(*this, {.checked = true, .sets_device = true},
                       [&](const Tensor& leaf, const EntryPath& path) {
                         return fn(path.ToString(), leaf);
                       });
}

}  // namespace rill
