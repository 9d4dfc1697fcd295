// SPDX-License-Identifier: Apache-2.0
// Members are immutable behind a shared pointer: a copy of a stack is one
// pointer. A change copies the members, which shares their tensors, changes the
// copies and then replaces the pointer, so that an error leaves the stack as it
// was.
#include "rill/tensordict/lazy_stack.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/pad_members.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

std::string LeafText(const Tensor& leaf) {
  return absl::StrCat(DTypeName(leaf.dtype()), leaf.shape().ToString(),
                      leaf.is_host() ? "" : " on " + leaf.device().ToString());
}

// The reason why the members cannot be stacked.
struct Differences {
  std::vector<std::string> ragged;   // Shapes differ.
  std::vector<std::string> missing;  // Keys that only some members have.
};

// All members against the first one: O(members * leaves).
Differences FindDifferences(absl::Span<const TensorDict> members) {
  Differences found;
  const auto note = [](std::vector<std::string>* keys, absl::string_view key) {
    if (std::find(keys->begin(), keys->end(), key) == keys->end()) {
      keys->emplace_back(key);
    }
  };
  // A key is missing where some member lacks it, whichever that is; ragged
  // where shapes differ from the first member's.
  for (const TensorDict& member : members) {
    members[0].ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      const Tensor* pair = member.Find(key);
      if (pair != nullptr && !(pair->shape() == leaf.shape())) {
        note(&found.ragged, key);
      }
      if (!member.Contains(key)) note(&found.missing, key);
    });
    member.ForEachLeaf([&](absl::string_view key, const Tensor&) {
      if (!members[0].Contains(key)) note(&found.missing, key);
    });
  }
  return found;
}

}  // namespace

LazyStack::LazyStack(Members members, const Shape& member_shape, int stack_dim)
    : members_(std::make_shared<const Members>(std::move(members))),
      stack_dim_(stack_dim) {
  // Without members the given shape stands for theirs.
  RaggedShape shape =
      members_->empty() ? member_shape : members_->front().batch_shape();
  for (const TensorDict& member : *members_) {
    shape = shape.MergedWith(member.batch_shape());
  }
  batch_shape_ = shape.WithDim(stack_dim, size());
}

absl::StatusOr<LazyStack> LazyStack::Create(std::vector<TensorDict> members,
                                            int stack_dim) {
  constexpr absl::string_view kCaller = "LazyStack::Create";
  if (members.empty()) {
    return InvalidArgument(kCaller,
                           ": number of members: got 0, want at least 1");
  }
  const Shape shape = members[0].batch_shape();
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].batch_shape().rank() == shape.rank()) continue;
    return InvalidArgument(kCaller, ": batch shape of member ", i, ": got ",
                           members[i].batch_shape().ToString(), ", want rank ",
                           shape.rank(), " as that of member 0, ",
                           shape.ToString(), "; sizes may differ");
  }
  if (stack_dim < 0 || stack_dim > shape.rank() ||
      shape.rank() == Shape::kMaxRank) {
    return InvalidArgument(kCaller, ": dimension for members of batch shape ",
                           shape.ToString(), ": got ", stack_dim,
                           ", want one in [0, ", shape.rank(),
                           "] and a rank below ", Shape::kMaxRank);
  }
  return LazyStack(std::move(members), shape, stack_dim);
}

Shape LazyStack::member_shape() const {
  Shape shape;
  // The sizes of a member; a ragged one is taken as 0, which is used only where
  // there are no members.
  for (int d = 0; d < batch_shape_.rank(); ++d) {
    if (d == stack_dim_) continue;
    shape = shape.Concat({std::max<int64_t>(batch_shape_[d], 0)});
  }
  return shape;
}

absl::StatusOr<TensorDict> LazyStack::Member(int64_t index) const {
  if (index < 0 || index >= size()) {
    return OutOfRange("LazyStack::Member: index ", index, " is outside [0, ",
                      size(), ")");
  }
  return members()[static_cast<size_t>(index)];
}

std::vector<std::string> LazyStack::Keys() const {
  std::vector<std::string> keys;
  if (size() == 0) return keys;
  for (std::string& key : members()[0].Keys()) {
    if (Contains(key)) keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> LazyStack::LeafKeys() const {
  std::vector<std::string> keys;
  if (size() == 0) return keys;
  for (std::string& key : members()[0].LeafKeys()) {
    const auto has_leaf = [&key](const TensorDict& member) {
      return member.Find(key) != nullptr;
    };
    if (std::all_of(members().begin(), members().end(), has_leaf)) {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

bool LazyStack::Contains(absl::string_view key) const {
  return size() > 0 && std::all_of(members().begin(), members().end(),
                                   [key](const TensorDict& member) {
                                     return member.Contains(key);
                                   });
}

absl::Status LazyStack::MissingKey(absl::string_view caller,
                                   absl::string_view key) const {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  // Members that have the key are counted, so that the message can say where to
  // look.
  int64_t having = 0;
  for (const TensorDict& member : members()) having += member.Contains(key);
  return NotFound(
      caller, ": no key \"", key, "\" in ", size() - having, " of ", size(),
      " members, common ones are: ", ListKeys(Keys()),
      having > 0 ? absl::StrCat("; ", having, " of them have it: use Member")
                 : "");
}

absl::StatusOr<Tensor> LazyStack::Get(absl::string_view key) const {
  constexpr absl::string_view kCaller = "LazyStack::Get";
  if (!Contains(key)) return MissingKey(kCaller, key);
  std::vector<Tensor> parts;
  parts.reserve(members().size());
  for (const TensorDict& member : members()) {
    RILL_ASSIGN_OR_RETURN(Tensor part, member.Get(key));
    parts.push_back(std::move(part));
  }
  const Tensor& first = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].dtype() == first.dtype() &&
        parts[i].device() == first.device() &&
        parts[i].shape() == first.shape()) {
      continue;
    }
    return InvalidArgument(
        kCaller, ": \"", key, "\": got ", LeafText(parts[i]), " in member ", i,
        ", want ", LeafText(first), " as in member 0",
        parts[i].shape() == first.shape()
            ? ""
            : "; a ragged leaf is read by Member(i) or ToPadded");
  }
  if (first.rank() == Shape::kMaxRank) {
    return InvalidArgument(kCaller, ": rank of \"", key, "\": got ",
                           first.rank(), ", want less than ", Shape::kMaxRank);
  }
  // After all parts have been compared: nothing is allocated for others.
  return StackLeaves(parts, stack_dim_);
}

absl::StatusOr<LazyStack> LazyStack::GetDict(absl::string_view key) const {
  if (!Contains(key)) return MissingKey("LazyStack::GetDict", key);
  Members parts;
  parts.reserve(members().size());
  for (const TensorDict& member : members()) {
    RILL_ASSIGN_OR_RETURN(TensorDict part, member.GetDict(key));
    parts.push_back(std::move(part));
  }
  return Create(std::move(parts), stack_dim_);
}

absl::StatusOr<NonTensorStack> LazyStack::GetNonTensorStack(
    absl::string_view key) const {
  if (!Contains(key)) return MissingKey("LazyStack::GetNonTensorStack", key);
  std::vector<NonTensorStack> parts;
  parts.reserve(members().size());
  for (const TensorDict& member : members()) {
    RILL_ASSIGN_OR_RETURN(NonTensorStack part, member.GetNonTensorStack(key));
    parts.push_back(std::move(part));
  }
  return NonTensorStack::Stack(parts, stack_dim_);
}

absl::Status LazyStack::ChangeMembers(
    absl::string_view caller,
    absl::FunctionRef<absl::Status(int64_t index, TensorDict* member)> fn) {
  if (locked_) {
    return FailedPrecondition(
        caller, ": the lazy stack is locked; Unlock it, or change a copy");
  }
  // The members' structures are copied, their tensors shared.
  Members changed = *members_;
  for (size_t i = 0; i < changed.size(); ++i) {
    RILL_RETURN_IF_ERROR(fn(static_cast<int64_t>(i), &changed[i]))
        << "in member " << i;
  }
  members_ = std::make_shared<const Members>(std::move(changed));
  return absl::OkStatus();
}

absl::Status LazyStack::CheckTensor(absl::string_view caller,
                                    absl::string_view key,
                                    const Tensor& tensor) const {
  if (batch_shape_.IsPrefixOf(tensor.shape())) return absl::OkStatus();
  return InvalidArgument(
      caller, ": shape of \"", key, "\": got ", tensor.shape().ToString(),
      ", want one that starts with the batch shape ", batch_shape_.ToString(),
      batch_shape_.is_ragged() ? ", which none does: change each Member" : "");
}

absl::Status LazyStack::Set(absl::string_view key, const Tensor& tensor) {
  constexpr absl::string_view kCaller = "LazyStack::Set";
  RILL_RETURN_IF_ERROR(CheckKey(key));
  RILL_RETURN_IF_ERROR(CheckTensor(kCaller, key, tensor));
  // Views of `tensor`: the stack's members share its bytes.
  return ChangeMembers(
      kCaller, [&](int64_t index, TensorDict* member) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(Tensor part, tensor.Select(stack_dim_, index));
        return member->Set(key, std::move(part));
      });
}

absl::Status LazyStack::Set(absl::string_view key, const NonTensor& value) {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  return ChangeMembers("LazyStack::Set", [&](int64_t, TensorDict* member) {
    return member->Set(key, value);
  });
}

absl::Status LazyStack::Delete(absl::string_view key) {
  if (!Contains(key)) return MissingKey("LazyStack::Delete", key);
  return ChangeMembers("LazyStack::Delete", [&](int64_t, TensorDict* member) {
    return member->Delete(key);
  });
}

absl::Status LazyStack::SetInPlace(absl::string_view key,
                                   const Tensor& tensor) const {
  constexpr absl::string_view kCaller = "LazyStack::SetInPlace";
  if (!Contains(key)) return MissingKey(kCaller, key);
  RILL_RETURN_IF_ERROR(CheckTensor(kCaller, key, tensor));
  // The first round only checks, so that a member that does not fit leaves the
  // others unwritten.
  for (const bool copies : {false, true}) {
    for (size_t i = 0; i < members().size(); ++i) {
      const Tensor* to = members()[i].Find(key);
      if (to == nullptr) {
        return InvalidArgument(kCaller, ": entry \"", key, "\" of member ", i,
                               ": got no tensor, want one");
      }
      RILL_ASSIGN_OR_RETURN(const Tensor part,
                            tensor.Select(stack_dim_, static_cast<int64_t>(i)));
      RILL_RETURN_IF_ERROR(copies ? to->CopyFrom(part)
                                  : to->CheckCopyFrom(part))
          << "at key \"" << key << "\" of member " << i;
    }
  }
  return absl::OkStatus();
}

// fn of every member, as a stack along `stack_dim`.
absl::StatusOr<LazyStack> LazyStack::MapMembers(
    int stack_dim,
    absl::FunctionRef<absl::StatusOr<TensorDict>(const TensorDict&)> fn) const {
  Members mapped;
  mapped.reserve(members().size());
  for (const TensorDict& member : members()) {
    absl::StatusOr<TensorDict> result = fn(member);
    RILL_RETURN_IF_ERROR(result.status()) << "in member " << mapped.size();
    mapped.push_back(*std::move(result));
  }
  if (!mapped.empty()) return Create(std::move(mapped), stack_dim);
  // Without members fn is applied to an empty dictionary of their shape, which
  // gives the shape of the result; the one member is then sliced away.
  RILL_ASSIGN_OR_RETURN(TensorDict empty, fn(TensorDict(member_shape())));
  RILL_ASSIGN_OR_RETURN(const LazyStack one,
                        Create({std::move(empty)}, stack_dim));
  return one.Slice(stack_dim, 0, 0);
}

absl::StatusOr<LazyStack> LazyStack::SelectDim(int dim, int64_t index) const {
  if (dim < 0 || dim >= batch_shape_.rank() || dim == stack_dim_) {
    return InvalidArgument(
        "LazyStack::SelectDim: batch dimension of batch shape ",
        batch_shape_.ToString(), ": got ", dim, ", want one in [0, ",
        batch_shape_.rank(), ") but ", stack_dim_,
        ", the dimension of the stack; use Member for that");
  }
  // The members lack the stack's dimension, so theirs behind it are one less.
  // Taking out a dimension before the stack's moves that one to the front.
  const bool before = dim < stack_dim_;
  return MapMembers(before ? stack_dim_ - 1 : stack_dim_,
                    [&](const TensorDict& member) {
                      return member.SelectDim(before ? dim : dim - 1, index);
                    });
}

absl::StatusOr<LazyStack> LazyStack::Slice(int dim, int64_t begin,
                                           int64_t end) const {
  if (dim < 0 || dim >= batch_shape_.rank()) {
    return InvalidArgument("LazyStack::Slice: batch dimension of batch shape ",
                           batch_shape_.ToString(), ": got ", dim,
                           ", want one in [0, ", batch_shape_.rank(), ")");
  }
  // In a ragged dimension each member checks the end against its own size.
  const bool is_ragged = batch_shape_[dim] == RaggedShape::kRagged;
  if (begin < 0 || begin > end || (!is_ragged && end > batch_shape_[dim])) {
    return OutOfRange("LazyStack::Slice: [", begin, ", ", end,
                      ") is not inside [0, ", batch_shape_[dim],
                      ") in dimension ", dim, " of batch shape ",
                      batch_shape_.ToString());
  }
  // Along the stack only the list is cut.
  if (dim == stack_dim_) {
    return LazyStack(
        Members(members_->begin() + begin, members_->begin() + end),
        member_shape(), stack_dim_);
  }
  const int member_dim = dim < stack_dim_ ? dim : dim - 1;
  return MapMembers(stack_dim_, [&](const TensorDict& member) {
    return member.Slice(member_dim, begin, end);
  });
}

absl::StatusOr<LazyStack> LazyStack::Unsqueeze(int dim) const {
  if (dim < 0 || dim > batch_shape_.rank() ||
      batch_shape_.rank() == Shape::kMaxRank) {
    return InvalidArgument(
        "LazyStack::Unsqueeze: new dimension of batch shape ",
        batch_shape_.ToString(), ": got ", dim, ", want one in [0, ",
        batch_shape_.rank(), "] and a rank below ", Shape::kMaxRank);
  }
  // A new dimension at the stack's place comes before it.
  const bool before = dim <= stack_dim_;
  return MapMembers(before ? stack_dim_ + 1 : stack_dim_,
                    [&](const TensorDict& member) {
                      return member.Unsqueeze(before ? dim : dim - 1);
                    });
}

absl::StatusOr<LazyStack> LazyStack::Gather(
    absl::Span<const int64_t> rows) const {
  // Rows of another dimension than the stack's are rows of each member.
  if (stack_dim_ != 0) {
    return MapMembers(stack_dim_, [&](const TensorDict& member) {
      return member.Gather(rows);
    });
  }
  Members chosen;
  chosen.reserve(rows.size());
  for (const int64_t row : rows) {
    RILL_ASSIGN_OR_RETURN(TensorDict member, Member(row));
    chosen.push_back(std::move(member));
  }
  return LazyStack(std::move(chosen), member_shape(), 0);
}

absl::StatusOr<TensorDict> LazyStack::ToDense() const {
  if (size() == 0) {
    return TensorDict(member_shape().WithDim(stack_dim_, 0));
  }
  // Stack itself refuses what does not fit; the reasons are looked for
  // afterwards, as they are costly and rarely wanted.
  absl::StatusOr<TensorDict> dense = Stack(members(), stack_dim_);
  if (dense.ok()) return dense;
  const Differences differences = FindDifferences(members());
  return absl::Status(
      dense.status().code(),
      absl::StrCat(
          "LazyStack::ToDense: batch shape ", batch_shape_.ToString(),
          ", ragged leaves: ", ListKeys(differences.ragged),
          "; keys of only some members: ", ListKeys(differences.missing),
          "; use Member or ToPadded; ", dense.status().message()));
}

absl::StatusOr<TensorDict> LazyStack::ToPadded(
    double pad_value, absl::string_view mask_key) const {
  constexpr absl::string_view kCaller = "LazyStack::ToPadded";
  RILL_RETURN_IF_ERROR(CheckKey(mask_key));
  const Differences differences = FindDifferences(members());
  if (!differences.missing.empty()) {
    return InvalidArgument(kCaller, ": keys: got ",
                           ListKeys(differences.missing),
                           " in only some members, want all in all");
  }
  // Members of different batch shapes have to be padded as a whole, level by
  // level.
  if (batch_shape_.is_ragged()) {
    return tensor_internal::PadMembers(members(), stack_dim_, pad_value,
                                       mask_key);
  }
  if (differences.ragged.empty()) return ToDense();
  // Batch shapes are equal, so only some leaves are ragged: these are padded by
  // themselves, and the rest is stacked as it is.
  const std::vector<absl::string_view> ragged(differences.ragged.begin(),
                                              differences.ragged.end());
  RILL_ASSIGN_OR_RETURN(const LazyStack even,
                        MapMembers(stack_dim_, [&](const TensorDict& member) {
                          return member.Exclude(ragged);
                        }));
  RILL_ASSIGN_OR_RETURN(TensorDict padded, even.ToDense());
  if (members()[0].Contains(mask_key)) {
    return InvalidArgument(kCaller, ": mask_key: got \"", mask_key,
                           "\", want a key where nothing stands");
  }
  for (const absl::string_view key : ragged) {
    std::vector<Tensor> parts;
    for (const TensorDict& member : members()) {
      RILL_ASSIGN_OR_RETURN(Tensor part, member.Get(key));
      parts.push_back(std::move(part));
    }
    absl::StatusOr<Padded> leaf = StackPadded(parts, stack_dim_, pad_value);
    if (!leaf.ok()) {
      return absl::Status(
          leaf.status().code(),
          absl::StrCat(leaf.status().message(), "; at key \"", key, "\""));
    }
    RILL_RETURN_IF_ERROR(padded.Set(key, std::move(leaf->values)));
    RILL_RETURN_IF_ERROR(
        padded.Set(absl::StrCat(mask_key, "/", key), std::move(leaf->mask)));
  }
  return padded;
}

absl::StatusOr<LazyStack> LazyStack::Clone() const {
  return MapMembers(stack_dim_,
                    [](const TensorDict& member) { return member.Clone(); });
}

absl::StatusOr<LazyStack> LazyStack::To(Device device) const {
  return MapMembers(stack_dim_, [device](const TensorDict& member) {
    return member.To(device);
  });
}

absl::StatusOr<LazyStack> LazyStack::Pin(Device device) const {
  return MapMembers(stack_dim_, [device](const TensorDict& member) {
    return member.Pin(device);
  });
}

std::string LazyStack::DebugString() const {
  constexpr size_t kMaxMembers = 8;
  std::string text =
      absl::StrCat("LazyStack ", batch_shape_.ToString(), " along ", stack_dim_,
                   locked_ ? " locked {\n" : " {\n");
  for (size_t i = 0; i < std::min(members().size(), kMaxMembers); ++i) {
    absl::StrAppend(&text, members()[i].DebugString(), "\n");
  }
  if (members().size() > kMaxMembers) absl::StrAppend(&text, "...\n");
  return text + "}";
}

}  // namespace rill
