// SPDX-License-Identifier: Apache-2.0
// TensorDict's entries that are neither tensors nor dictionaries.
#include <cstdint>
#include <memory>
#include <optional>
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
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"

namespace rill {

absl::string_view TensorDict::Entry::KindText(EntryKind kind) {
  switch (kind) {
    case EntryKind::kTensor:
      return "a tensor";
    case EntryKind::kDict:
      return "a dictionary";
    case EntryKind::kNonTensor:
      return "a non-tensor value";
    case EntryKind::kNonTensorStack:
      return "a stack of non-tensor values";
    case EntryKind::kLazyStack:
      return "a lazy stack";
    case EntryKind::kRagged:
      break;
  }
  return "a ragged tensor";
}

absl::Status TensorDict::Internal::WithKey(const absl::Status& status,
                                           const Path& path) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; at key \"", path.ToString(), "\""));
}

TensorDict::Entry::Value TensorDict::Internal::ValueOf(NonTensorStack values) {
  return std::make_shared<const NonTensorStack>(std::move(values));
}

TensorDict::Entry::Value TensorDict::Internal::ValueOf(LazyStack stack) {
  stack.Unlock();
  return std::make_shared<const LazyStack>(std::move(stack));
}

TensorDict::Entry::Value TensorDict::Internal::ValueOf(RaggedTensor rows) {
  return std::make_shared<const RaggedTensor>(std::move(rows));
}

absl::Status TensorDict::Set(absl::string_view key, NonTensorStack values) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Set"));
  return Internal::SetValue(this, key, Internal::ValueOf(std::move(values)));
}

absl::Status TensorDict::Set(absl::string_view key, LazyStack stack) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Set"));
  return Internal::SetValue(this, key, Internal::ValueOf(std::move(stack)));
}

absl::Status TensorDict::Set(absl::string_view key, RaggedTensor rows) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Set"));
  return Internal::SetValue(this, key, Internal::ValueOf(std::move(rows)));
}

absl::StatusOr<NonTensorStack> TensorDict::GetNonTensorStack(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(
      const Entry* entry,
      Internal::FindKind(*this, "TensorDict::GetNonTensorStack", key,
                         EntryKind::kNonTensorStack));
  if (entry->non_tensor_stack() != nullptr) return *entry->non_tensor_stack();
  return NonTensorStack::Filled(Internal::LevelOf(*this, key)->batch_shape_,
                                *entry->non_tensor());
}

absl::StatusOr<LazyStack> TensorDict::GetLazyStack(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::GetLazyStack",
                                           key, EntryKind::kLazyStack));
  return *entry->lazy_stack();
}

absl::StatusOr<RaggedTensor> TensorDict::GetRagged(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::GetRagged", key,
                                           EntryKind::kRagged));
  return *entry->ragged();
}

// The entry of the lazy stack that `key` goes through, and what is left of the
// key there. Null where it goes through none.
TensorDict::Entry* TensorDict::Internal::FindLazyStack(
    const TensorDict& dict, absl::string_view key, absl::string_view* rest) {
  const TensorDict* level = &dict;
  absl::string_view head;
  while (level != nullptr) {
    SplitKeyHead(key, &head, rest);
    const Entry* entry = FindHere(*level, head);
    if (entry == nullptr || rest->empty()) return nullptr;
    if (entry->lazy_stack() != nullptr) return const_cast<Entry*>(entry);
    level = entry->dict();
    key = *rest;
  }
  return nullptr;
}

void TensorDict::Internal::VisitTensors(
    const TensorDict& dict, absl::FunctionRef<void(const Tensor&)> fn) {
  for (const Entry& entry : dict.entries_) {
    if (const Tensor* tensor = entry.tensor()) {
      fn(*tensor);
    } else if (const TensorDict* nested = entry.dict()) {
      VisitTensors(*nested, fn);
    } else if (const LazyStack* stack = entry.lazy_stack()) {
      for (const TensorDict& member : stack->members()) {
        VisitTensors(member, fn);
      }
    } else if (const RaggedTensor* rows = entry.ragged()) {
      fn(rows->values());
    }
  }
}

// The result of an operation on the first `old_rank` dimensions, for a lazy
// stack. Where it can be done member by member, the members stay apart; else
// the stack becomes dense.
absl::StatusOr<TensorDict::Entry::Value> TensorDict::Internal::MapLazyStack(
    const LazyStack& stack, const Shape& prefix, int old_rank,
    const ShapeOp& op,
    absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn,
    const Path& path) {
  absl::StatusOr<LazyStack> mapped = absl::InternalError("");
  const int stack_dim = stack.stack_dim();
  if (op.kind == ShapeOp::kCopy) {
    mapped = stack.MapMembers(stack_dim, [&](const TensorDict& member) {
      return Map(member, member.batch_shape_, member.batch_shape_.rank(), op,
                 fn, &path);
    });
  } else if (stack_dim >= old_rank) {
    // Behind the dimensions that change, which are the members' first ones.
    mapped = stack.MapMembers(
        stack_dim - old_rank + prefix.rank(), [&](const TensorDict& member) {
          return Map(member, prefix, old_rank, op, fn, &path);
        });
  } else if (op.kind == ShapeOp::kSelect && op.dim == stack_dim) {
    absl::StatusOr<TensorDict> member = stack.Member(op.begin);
    if (!member.ok()) return WithKey(member.status(), path);
    return Entry::Value(std::make_unique<TensorDict>(*std::move(member)));
  } else if (op.kind == ShapeOp::kSelect) {
    mapped = stack.SelectDim(op.dim, op.begin);
  } else if (op.kind == ShapeOp::kSlice) {
    mapped = stack.Slice(op.dim, op.begin, op.end);
  } else if (op.kind == ShapeOp::kUnsqueeze) {
    mapped = stack.Unsqueeze(op.dim);
  } else {
    absl::StatusOr<TensorDict> dense = stack.ToDense();
    if (!dense.ok()) return WithKey(dense.status(), path);
    dense = Map(*dense, prefix, old_rank, op, fn, &path);
    if (!dense.ok()) return dense.status();
    return Entry::Value(std::make_unique<TensorDict>(*std::move(dense)));
  }
  if (!mapped.ok()) return mapped.status();
  return ValueOf(*std::move(mapped));
}

// The result of an operation for an entry that is neither tensor nor
// dictionary. Rows of a gather or a join come later, from GatherRare or
// JoinRare; an empty value holds their place.
absl::StatusOr<TensorDict::Entry::Value> TensorDict::Internal::MapRare(
    const Entry& entry, const Shape& batch_shape, const Shape& prefix,
    int old_rank, const ShapeOp& op,
    absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn,
    const Path& path) {
  if (op.kind == ShapeOp::kRows || op.kind == ShapeOp::kStack) {
    return Entry::Value(NonTensor{});
  }
  if (const NonTensor* value = entry.non_tensor()) return Entry::Value(*value);
  if (const NonTensorStack* values = entry.non_tensor_stack()) {
    if (op.kind == ShapeOp::kCopy) return Entry::CopyOf(entry.value);
    absl::StatusOr<NonTensorStack> mapped = values->MapIndex(fn);
    if (!mapped.ok()) return WithKey(mapped.status(), path);
    if (!(mapped->shape() == batch_shape)) {
      return WithKey(absl::InvalidArgumentError(absl::StrCat(
                         "TensorDict::MapShape: shape of the indices: got ",
                         mapped->shape().ToString(), ", want the batch shape ",
                         batch_shape.ToString())),
                     path);
    }
    // Without dimensions a column is a single value.
    if (batch_shape.rank() == 0) return Entry::Value(*mapped->At(0));
    return ValueOf(*std::move(mapped));
  }
  if (const LazyStack* stack = entry.lazy_stack()) {
    return MapLazyStack(*stack, prefix, old_rank, op, fn, path);
  }
  const RaggedTensor& rows = *entry.ragged();
  if (op.kind == ShapeOp::kSelect && op.dim == 0) {
    absl::StatusOr<Tensor> row = rows.Row(op.begin);
    if (!row.ok()) return WithKey(row.status(), path);
    return Entry::Value(*std::move(row));
  }
  absl::StatusOr<RaggedTensor> mapped = absl::InvalidArgumentError(
      "TensorDict: a ragged tensor: got an operation that changes its shape, "
      "want Index, Slice, Gather or Cat of dimension 0; pad it first "
      "(RaggedTensor::ToPadded)");
  if (op.kind == ShapeOp::kSlice && op.dim == 0) {
    mapped = rows.Slice(op.begin, op.end);
  } else if (op.kind == ShapeOp::kCopy) {
    absl::StatusOr<Tensor> values = fn(rows.values());
    mapped = values.ok() ? rows.WithValues(*values)
                         : absl::StatusOr<RaggedTensor>(values.status());
  }
  if (!mapped.ok()) return WithKey(mapped.status(), path);
  return ValueOf(*std::move(mapped));
}

// Apply for these entries: fn sees the tensors inside of them.
absl::Status TensorDict::Internal::ApplyRare(
    const Entry& entry, const std::string& key, const TensorDict& from,
    absl::FunctionRef<absl::StatusOr<Tensor>(absl::string_view, const Tensor&)>
        fn,
    TensorDict* to) {
  const bool keeps_shape = to->batch_shape_ == from.batch_shape_;
  if (const LazyStack* stack = entry.lazy_stack()) {
    const int old_rank = from.batch_shape_.rank();
    if (keeps_shape || stack->stack_dim() >= old_rank) {
      const int shift = to->batch_shape_.rank() - old_rank;
      RILL_ASSIGN_OR_RETURN(
          LazyStack mapped,
          stack->MapMembers(
              stack->stack_dim() + shift, [&](const TensorDict& member) {
                const Shape& shape = member.batch_shape_;
                return member.Apply(
                    keeps_shape ? shape
                                : WithPrefix(shape, to->batch_shape_, old_rank),
                    [&](absl::string_view inside, const Tensor& leaf) {
                      return fn(absl::StrCat(key, "/", inside), leaf);
                    });
              }));
      return to->Set(entry.name, std::move(mapped));
    }
  } else if (keeps_shape && entry.ragged() != nullptr) {
    RILL_ASSIGN_OR_RETURN(const Tensor values,
                          fn(key, entry.ragged()->values()));
    absl::StatusOr<RaggedTensor> mapped = entry.ragged()->WithValues(values);
    if (!mapped.ok()) return WithKey(mapped.status(), {nullptr, key});
    return to->Set(entry.name, *std::move(mapped));
  } else if (keeps_shape || entry.non_tensor() != nullptr) {
    to->entries_.push_back(entry);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "TensorDict::Apply: batch shape with ", Entry::KindText(entry.kind()),
      " at \"", key, "\": got ", to->batch_shape_.ToString(), ", want ",
      from.batch_shape_.ToString(), "; Delete or convert it first"));
}

// Pointers in `changes` are into the dictionary that was walked, which nobody
// has changed since.
void TensorDict::Internal::Commit(Changes changes) {
  for (Change& change : changes) change.entry->value = std::move(change.value);
}

absl::Status TensorDict::Internal::GatherRare(const TensorDict& from,
                                              absl::Span<const int64_t> rows,
                                              const TensorDict& to,
                                              const Path* up,
                                              Changes* changes) {
  for (size_t i = 0; i < from.entries_.size(); ++i) {
    const Entry& entry = from.entries_[i];
    if (entry.tensor() != nullptr) continue;
    const Path path = {up, entry.name};
    Entry* target = const_cast<Entry*>(FindHere(to, entry.name, i));
    absl::Status status;
    const auto change = [&](auto gathered) {
      status = WithKey(gathered.status(), path);
      if (status.ok()) changes->push_back({target, ValueOf(*gathered)});
    };
    if (const TensorDict* nested = entry.dict()) {
      status = GatherRare(*nested, rows, *target->dict(), &path, changes);
    } else if (const NonTensor* value = entry.non_tensor()) {
      if (target->non_tensor() == nullptr || *target->non_tensor() != *value) {
        changes->push_back({target, *value});
      }
    } else if (const NonTensorStack* values = entry.non_tensor_stack()) {
      change(values->Gather(rows));
    } else if (const RaggedTensor* ragged = entry.ragged()) {
      change(ragged->Gather(rows));
    } else {
      // Rows of the stack's dimension are members, which share bytes;
      // GatherInto promises copies.
      absl::StatusOr<LazyStack> chosen = entry.lazy_stack()->Gather(rows);
      if (chosen.ok() && chosen->stack_dim() == 0) chosen = chosen->Clone();
      change(std::move(chosen));
    }
    RILL_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

void TensorDict::Internal::CopyLabels(const TensorDict& from, const ShapeOp& op,
                                      TensorDict* to) {
  to->device_ = from.device_;
  to->dim_names_ = NamesAfter(from.dim_names_, op);
  for (size_t i = 0; i < from.entries_.size(); ++i) {
    if (const TensorDict* nested = from.entries_[i].dict()) {
      CopyLabels(*nested, op, FindHere(*to, from.entries_[i].name, i)->dict());
    }
  }
}

}  // namespace rill
