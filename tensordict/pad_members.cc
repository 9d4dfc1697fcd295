// SPDX-License-Identifier: Apache-2.0
// Members are padded level by level. A level's dictionaries are stacked with
// all their entries; masks are collected over all levels and set at the end,
// under mask_key/<key of the leaf>.
#include "rill/tensordict/pad_members.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::tensor_internal {
namespace {

constexpr absl::string_view kCaller = "LazyStack::ToPadded";

// `tensor` in the first corner of zeros of `shape`: rows begin where they did.
absl::StatusOr<Tensor> InCorner(const Tensor& tensor, const Shape& shape) {
  RILL_ASSIGN_OR_RETURN(Tensor whole, Tensor::Zeros(tensor.dtype(), shape));
  Tensor corner = whole;
  for (int d = 0; d < shape.rank(); ++d) {
    RILL_ASSIGN_OR_RETURN(corner, corner.Slice(d, 0, tensor.shape()[d]));
  }
  RILL_RETURN_IF_ERROR(corner.CopyFrom(tensor));
  return whole;
}

class Padder {
 public:
  Padder(int stack_dim, double pad_value, absl::string_view mask_key)
      : stack_dim_(stack_dim), pad_value_(pad_value), mask_key_(mask_key) {}

  absl::StatusOr<TensorDict> Pad(absl::Span<const TensorDict> members) {
    RILL_ASSIGN_OR_RETURN(TensorDict padded, Level(members, ""));
    for (auto& [key, mask] : masks_) {
      // A mask covers the whole batch shape, whichever dimensions were ragged.
      RILL_ASSIGN_OR_RETURN(mask, Widened(mask, padded.batch_shape()));
      RILL_RETURN_IF_ERROR(
          padded.Set(absl::StrCat(mask_key_, "/", key), std::move(mask)));
    }
    return padded;
  }

 private:
  // The largest sizes, before the dimension of the stack goes in.
  static absl::StatusOr<Shape> Largest(absl::Span<const TensorDict> level) {
    Shape largest = level[0].batch_shape();
    for (const TensorDict& dict : level) {
      const Shape& shape = dict.batch_shape();
      if (shape.rank() != largest.rank()) {
        return InvalidArgument(kCaller, ": batch shape: got ", shape.ToString(),
                               " and ", largest.ToString(),
                               ", want shapes of one rank");
      }
      for (int d = 0; d < shape.rank(); ++d) {
        largest = largest.WithSize(d, std::max(largest[d], shape[d]));
      }
    }
    return largest;
  }

  absl::StatusOr<TensorDict> Level(absl::Span<const TensorDict> level,
                                   const std::string& prefix) {
    RILL_ASSIGN_OR_RETURN(const Shape largest, Largest(level));
    TensorDict padded(
        largest.WithDim(stack_dim_, static_cast<int64_t>(level.size())));
    for (const std::string& name : level[0].Keys()) {
      RILL_RETURN_IF_ERROR(
          Entry(level, largest, name, absl::StrCat(prefix, name), &padded));
    }
    std::vector<std::string> names = level[0].dim_names();
    if (names.empty()) return padded;
    names.insert(names.begin() + stack_dim_, "");
    RILL_RETURN_IF_ERROR(padded.SetDimNames(names));
    return padded;
  }

  // That all have the key, and what it is; a value and a stack of values are
  // one kind.
  static absl::StatusOr<EntryKind> KindOf(absl::Span<const TensorDict> level,
                                          const std::string& name,
                                          const std::string& key) {
    const auto kind_of = [&name](const TensorDict& dict) {
      const std::optional<EntryKind> kind = dict.Kind(name);
      return kind == EntryKind::kNonTensorStack ? EntryKind::kNonTensor : kind;
    };
    const std::optional<EntryKind> kind = kind_of(level[0]);
    for (const TensorDict& dict : level) {
      if (kind_of(dict) == kind) continue;
      return InvalidArgument(
          kCaller, ": entries at \"", key,
          "\": got different kinds, or none in some members, want one kind");
    }
    return *kind;
  }

  absl::Status Entry(absl::Span<const TensorDict> level, const Shape& largest,
                     const std::string& name, const std::string& key,
                     TensorDict* padded) {
    RILL_ASSIGN_OR_RETURN(const EntryKind kind, KindOf(level, name, key));
    switch (kind) {
      case EntryKind::kTensor: {
        std::vector<Tensor> leaves;
        for (const TensorDict& dict : level) leaves.push_back(*dict.Find(name));
        // Padded along all dimensions of the leaf, those of the batch and its
        // own.
        absl::StatusOr<Padded> leaf =
            StackPadded(leaves, stack_dim_, pad_value_);
        RILL_RETURN_IF_ERROR(leaf.status()) << "at key \"" << key << "\"";
        masks_.emplace_back(key, std::move(leaf->mask));
        return padded->Set(name, std::move(leaf->values));
      }
      case EntryKind::kDict: {
        std::vector<TensorDict> inner;
        for (const TensorDict& dict : level) {
          inner.push_back(*dict.FindDict(name));
        }
        RILL_ASSIGN_OR_RETURN(TensorDict dict,
                              Level(inner, absl::StrCat(key, "/")));
        return padded->Set(name, std::move(dict));
      }
      case EntryKind::kNonTensor:
        return Values(level, largest, name, padded);
      default:
        return InvalidArgument(
            kCaller, ": entry \"", key, "\" of members of different batch ",
            "shapes: got a lazy stack or a ragged tensor, want a tensor, a "
            "dictionary or a value; Exclude or pad it first");
    }
  }

  // One value for all rows stays one value. Else each member's column is padded
  // by null to the largest shape.
  absl::Status Values(absl::Span<const TensorDict> level, const Shape& largest,
                      const std::string& name, TensorDict* padded) const {
    const auto one = level[0].GetNonTensor(name);
    const auto is_one = [&](const TensorDict& dict) {
      const auto value = dict.GetNonTensor(name);
      return one.ok() && value.ok() && *value == *one;
    };
    if (std::all_of(level.begin(), level.end(), is_one)) {
      return padded->Set(name, *one);
    }
    std::vector<NonTensorStack> parts;
    for (const TensorDict& dict : level) {
      RILL_ASSIGN_OR_RETURN(NonTensorStack part, dict.GetNonTensorStack(name));
      RILL_ASSIGN_OR_RETURN(part, part.MapIndex([&](const Tensor& index) {
        return InCorner(index, largest);  // 0 is null.
      }));
      parts.push_back(std::move(part));
    }
    RILL_ASSIGN_OR_RETURN(NonTensorStack values,
                          NonTensorStack::Stack(parts, stack_dim_));
    return padded->Set(name, std::move(values));
  }

  // A mask ends with the last dimension that was padded: the others of the
  // batch repeat it.
  static absl::StatusOr<Tensor> Widened(Tensor mask, const Shape& batch) {
    for (int d = mask.rank(); d < batch.rank(); ++d) {
      RILL_ASSIGN_OR_RETURN(mask, mask.Unsqueeze(d));
      RILL_ASSIGN_OR_RETURN(mask,
                            mask.Expand(mask.shape().WithSize(d, batch[d])));
    }
    return mask.Contiguous();
  }

  const int stack_dim_;
  const double pad_value_;
  const absl::string_view mask_key_;
  std::vector<std::pair<std::string, Tensor>> masks_;  // By key.
};

}  // namespace

absl::StatusOr<TensorDict> PadMembers(absl::Span<const TensorDict> members,
                                      int stack_dim, double pad_value,
                                      absl::string_view mask_key) {
  if (members[0].Contains(mask_key)) {
    return InvalidArgument(kCaller, ": mask_key: got \"", mask_key,
                           "\", want a key where nothing stands");
  }
  return Padder(stack_dim, pad_value, mask_key).Pad(members);
}

}  // namespace rill::tensor_internal
