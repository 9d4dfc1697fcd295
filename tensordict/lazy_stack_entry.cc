// SPDX-License-Identifier: Apache-2.0
// TensorDict's entries of dictionaries that are kept apart. Keys may lead into
// them: see Internal::FindLazyStack.
#include <cstddef>
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
#include "rill/tensordict/key.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace tensor_internal {

class LazyStackEntry final : public NonTensorEntry {
 public:
  using Internal = TensorDict::Internal;

  explicit LazyStackEntry(LazyStack stack)
      : NonTensorEntry(EntryKind::kLazyStack), stack_(std::move(stack)) {
    stack_.Unlock();
  }

  static const LazyStack& Of(const NonTensorEntry& entry) {
    return static_cast<const LazyStackEntry&>(entry).stack_;
  }

  absl::Status CheckFits(absl::string_view key,
                         const Shape& batch_shape) const override {
    return Internal::CheckStart(batch_shape, "batch shape", key,
                                stack_.batch_shape());
  }

  void VisitTensors(absl::FunctionRef<void(const Tensor&)> fn) const override {
    for (const TensorDict& member : stack_.members()) {
      Internal::VisitTensors(member, fn);
    }
  }

  // Where it can be done member by member, the members stay apart; else the
  // stack becomes dense.
  absl::StatusOr<EntryValue> Map(const ShapeOp& op, LeafFn fn,
                                 const EntryPath& path) const override {
    const int stack_dim = stack_.stack_dim();
    absl::StatusOr<LazyStack> mapped = absl::InternalError("");
    if (stack_dim >= op.old_rank) {
      // Behind the dimensions that change, which are the members' first ones.
      mapped = stack_.MapMembers(stack_dim - op.old_rank + op.prefix.rank(),
                                 [&](const TensorDict& member) {
                                   return Internal::Map(member, op, fn, &path);
                                 });
    } else if (op.kind == ShapeOp::kSelect && op.dim == stack_dim) {
      absl::StatusOr<TensorDict> member = stack_.Member(op.begin);
      if (!member.ok()) return WithKey(member.status(), path);
      return EntryValue(std::make_unique<TensorDict>(*std::move(member)));
    } else if (op.kind == ShapeOp::kSelect) {
      mapped = stack_.SelectDim(op.dim, op.begin);
    } else if (op.kind == ShapeOp::kSlice) {
      mapped = stack_.Slice(op.dim, op.begin, op.end);
    } else if (op.kind == ShapeOp::kUnsqueeze) {
      mapped = stack_.Unsqueeze(op.dim);
    } else {
      absl::StatusOr<TensorDict> dense = stack_.ToDense();
      if (!dense.ok()) return WithKey(dense.status(), path);
      dense = Internal::Map(*dense, op, fn, &path);
      if (!dense.ok()) return dense.status();
      return EntryValue(std::make_unique<TensorDict>(*std::move(dense)));
    }
    if (!mapped.ok()) return mapped.status();
    return Internal::ValueOf(*std::move(mapped));
  }

  // Rows of the stack's dimension are members, which share bytes: cloned.
  absl::StatusOr<NonTensorPointer> Gather(
      absl::Span<const int64_t> rows) const override {
    absl::StatusOr<LazyStack> chosen = stack_.Gather(rows);
    if (chosen.ok() && chosen->stack_dim() == 0) chosen = chosen->Clone();
    if (!chosen.ok()) return chosen.status();
    return std::make_shared<LazyStackEntry>(*std::move(chosen));
  }

  // Lazy stacks of one size and dimension are joined member by member; along
  // their own dimension Cat takes the members of all.
  absl::StatusOr<NonTensorPointer> Join(
      const JoinOp& op, absl::Span<const JoinPart> parts) const override {
    const int stack_dim = stack_.stack_dim();
    const bool in_a_row = !op.new_dim && op.dim == stack_dim;
    std::vector<TensorDict> members;
    for (const JoinPart& part : parts) {
      const LazyStack& stack = Of(*part.entry);
      if (stack.stack_dim() != stack_dim ||
          (!in_a_row && stack.size() != stack_.size())) {
        return InvalidArgument(op.caller, ": lazy stack: got ", stack.size(),
                               " members along ", stack.stack_dim(), ", want ",
                               stack_.size(), " along ", stack_dim,
                               " as in dictionary 0");
      }
      if (!in_a_row) continue;
      RILL_ASSIGN_OR_RETURN(const LazyStack copy, stack.Clone());
      members.insert(members.end(), copy.members().begin(),
                     copy.members().end());
    }
    if (in_a_row && members.empty()) return shared_from_this();
    absl::StatusOr<LazyStack> joined =
        in_a_row ? LazyStack::Create(std::move(members), stack_dim)
                 : JoinMembers(op, parts);
    if (!joined.ok()) return joined.status();
    return std::make_shared<LazyStackEntry>(*std::move(joined));
  }

  absl::StatusOr<bool> CopyFrom(const NonTensorEntry& from, const Shape&,
                                bool copies,
                                const EntryPath& path) const override {
    const LazyStack& source = Of(from);
    if (source.size() != stack_.size() ||
        source.stack_dim() != stack_.stack_dim()) {
      return WithKey(InvalidArgument("TensorDict::CopyFrom: lazy stack: got ",
                                     source.batch_shape().ToString(), ", want ",
                                     stack_.batch_shape().ToString()),
                     path);
    }
    for (size_t i = 0; i < source.members().size(); ++i) {
      const std::string number = absl::StrCat("[", i, "]");
      const EntryPath member = {&path, number};
      RILL_RETURN_IF_ERROR(Internal::CopyElements(
          source.members()[i], stack_.members()[i], &member, copies, nullptr));
    }
    return false;
  }

  absl::Status Compare(const NonTensorEntry& want, const Comparison& comparison,
                       const EntryPath& path) const override {
    return Compare(stack_, Of(want), comparison, path);
  }
  static absl::Status Compare(const LazyStack& got, const LazyStack& want,
                              const Comparison& comparison,
                              const EntryPath& path) {
    if (got.size() != want.size() || got.stack_dim() != want.stack_dim()) {
      const auto text = [](const LazyStack& stack) {
        return absl::StrCat(stack.size(), " members along ", stack.stack_dim());
      };
      return comparison.Differs(path, text(got), text(want));
    }
    for (size_t i = 0; i < want.members().size(); ++i) {
      const std::string number = absl::StrCat("[", i, "]");
      const EntryPath member = {&path, number};
      RILL_RETURN_IF_ERROR(Internal::CompareDicts(
          got.members()[i], want.members()[i], &member, comparison));
    }
    return absl::OkStatus();
  }

  std::string DebugString() const override { return stack_.DebugString(); }

 private:
  absl::StatusOr<LazyStack> JoinMembers(
      const JoinOp& op, absl::Span<const JoinPart> parts) const {
    // A new dimension before the stack's moves that one back.
    const int stack_dim = stack_.stack_dim();
    const bool shifts = op.new_dim && op.dim <= stack_dim;
    const int member_dim = op.dim < stack_dim || shifts ? op.dim : op.dim - 1;
    size_t number = 0;
    const auto join_members = [&](const TensorDict&) {
      std::vector<TensorDict> column;
      for (const JoinPart& part : parts) {
        const LazyStack& stack = Of(*part.entry);
        column.push_back(number < stack.members().size()
                             ? stack.members()[number]
                             : TensorDict(stack.member_shape()));
      }
      ++number;
      return op.new_dim ? Stack(column, member_dim) : Cat(column, member_dim);
    };
    return stack_.MapMembers(stack_dim + (shifts ? 1 : 0), join_members);
  }

  LazyStack stack_;
};

}  // namespace tensor_internal

using tensor_internal::Comparison;
using tensor_internal::LazyStackEntry;

TensorDict::Entry::Value TensorDict::Internal::ValueOf(LazyStack stack) {
  return std::make_shared<LazyStackEntry>(std::move(stack));
}

const LazyStack* TensorDict::Internal::StackOf(const Entry& entry) {
  return entry.kind() == EntryKind::kLazyStack
             ? &LazyStackEntry::Of(*entry.other())
             : nullptr;
}

const LazyStack* TensorDict::Internal::FindLazyStack(const TensorDict& dict,
                                                     absl::string_view key,
                                                     absl::string_view* rest) {
  const TensorDict* level = &dict;
  absl::string_view head;
  while (level != nullptr) {
    SplitKeyHead(key, &head, rest);
    const Entry* entry = FindHere(*level, head);
    if (entry == nullptr || rest->empty()) return nullptr;
    if (const LazyStack* stack = StackOf(*entry)) return stack;
    level = entry->dict();
    key = *rest;
  }
  return nullptr;
}

absl::Status TensorDict::Set(absl::string_view key, LazyStack stack) {
  return Internal::CheckAndSet(this, key, Internal::ValueOf(std::move(stack)));
}

absl::StatusOr<LazyStack> TensorDict::GetLazyStack(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::GetLazyStack",
                                           key, EntryKind::kLazyStack));
  return *Internal::StackOf(*entry);
}

absl::Status LazyStack::CheckEqual(const LazyStack& other) const {
  return LazyStackEntry::Compare(
      *this, other, Comparison{"LazyStack::CheckEqual"}, {nullptr, "members"});
}

absl::Status LazyStack::CheckClose(const LazyStack& other, double absolute,
                                   double relative) const {
  RILL_ASSIGN_OR_RETURN(
      const Comparison close,
      Comparison::Close("LazyStack::CheckClose", absolute, relative));
  return LazyStackEntry::Compare(*this, other, close, {nullptr, "members"});
}

}  // namespace rill
