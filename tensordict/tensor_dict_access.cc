// SPDX-License-Identifier: Apache-2.0
// TensorDict's reading access, changes of whole entries, and of bytes where
// they lie.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// The parent's text and the last component of a key that has been checked.
void SplitKeyTail(absl::string_view key, absl::string_view* parent,
                  absl::string_view* tail) {
  absl::string_view head, rest = key;
  do {
    *tail = rest;
    SplitKeyHead(*tail, &head, &rest);
  } while (!rest.empty());
  *parent = key.substr(0, key.size() - tail->size());
}

absl::Status Differs(absl::string_view what, absl::string_view got,
                     absl::string_view want) {
  return InvalidArgument("TensorDict::CopyFrom: ", what, ": got ", got,
                         ", want ", want);
}

}  // namespace

const Tensor* TensorDict::Find(absl::string_view key) const {
  const Entry* entry = Internal::FindEntry(*this, key);
  return entry == nullptr ? nullptr : entry->tensor();
}

const TensorDict* TensorDict::FindDict(absl::string_view key) const {
  const Entry* entry = Internal::FindEntry(*this, key);
  return entry == nullptr ? nullptr : entry->dict();
}

bool TensorDict::Contains(absl::string_view key) const {
  if (Internal::FindEntry(*this, key) != nullptr) return true;
  // Not an entry of a dictionary, but perhaps one of a lazy stack's members.
  absl::string_view rest;
  const LazyStack* stack = Internal::FindLazyStack(*this, key, &rest);
  return stack != nullptr && stack->Contains(rest);
}

std::optional<EntryKind> TensorDict::Kind(absl::string_view key) const {
  const Entry* entry = Internal::FindEntry(*this, key);
  if (entry == nullptr) return std::nullopt;
  return entry->kind();
}

absl::StatusOr<const TensorDict::Entry*> TensorDict::Internal::FindKind(
    const TensorDict& dict, absl::string_view caller, absl::string_view key,
    EntryKind kind) {
  const Entry* entry = FindEntry(dict, key);
  if (entry == nullptr) return MissingKey(dict, caller, key);
  if (entry->kind() == kind || (kind == EntryKind::kNonTensorStack &&
                                entry->kind() == EntryKind::kNonTensor)) {
    return entry;
  }
  return InvalidArgument(caller, ": entry \"", key, "\": got ",
                         Entry::KindText(entry->kind()), ", want ",
                         Entry::KindText(kind),
                         "; use Get, GetDict, GetNonTensor ... after its Kind");
}

// The dictionary that holds the entry of `key`, which is there.
const TensorDict* TensorDict::Internal::LevelOf(const TensorDict& dict,
                                                absl::string_view key) {
  const TensorDict* level = &dict;
  absl::string_view head, rest;
  for (SplitKeyHead(key, &head, &rest); !rest.empty();
       SplitKeyHead(rest, &head, &rest)) {
    level = FindHere(*level, head)->dict();
  }
  return level;
}

absl::StatusOr<Tensor> TensorDict::Get(absl::string_view key) const {
  if (const Tensor* tensor = Find(key)) return *tensor;
  absl::string_view rest;
  if (const LazyStack* stack = Internal::FindLazyStack(*this, key, &rest)) {
    return stack->Get(rest);
  }
  return Internal::FindKind(*this, "TensorDict::Get", key, EntryKind::kTensor)
      .status();
}

absl::Status TensorDict::NotFlat(absl::string_view key,
                                 const absl::Status& status) {
  return tensor_internal::WithKey(status, {nullptr, key});
}

absl::StatusOr<Tensor> TensorDict::GetOr(absl::string_view key,
                                         Tensor fallback) const {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  if (!Contains(key)) return fallback;
  return Get(key);
}

absl::StatusOr<Tensor> TensorDict::SetDefault(absl::string_view key,
                                              Tensor fallback) {
  if (Contains(key)) return Get(key);
  RILL_RETURN_IF_ERROR(Set(key, fallback));
  return fallback;
}

absl::StatusOr<Tensor> TensorDict::Pop(absl::string_view key) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Pop"));
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Get(key));
  RILL_RETURN_IF_ERROR(Delete(key));
  return tensor;
}

absl::StatusOr<TensorDict> TensorDict::GetDict(absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(
      const Entry* entry,
      Internal::FindKind(*this, "TensorDict::GetDict", key, EntryKind::kDict));
  TensorDict dict = *entry->dict();
  const TensorDict* level = this;  // And those on the way: the nearest counts.
  absl::string_view head, rest;
  std::optional<Device> device;
  Internal::Names names;
  for (SplitKeyHead(key, &head, &rest);; SplitKeyHead(rest, &head, &rest)) {
    if (level->device_.has_value()) device = level->device_;
    if (level->dim_names_ != nullptr) names = level->dim_names_;
    if (rest.empty()) break;
    level = Internal::FindHere(*level, head)->dict();
  }
  if (!dict.device_.has_value()) dict.device_ = device;
  if (dict.dim_names_ == nullptr && names != nullptr &&
      static_cast<int>(names->size()) == dict.batch_shape_.rank()) {
    dict.dim_names_ = std::move(names);
  } else if (dict.dim_names_ == nullptr && names != nullptr) {
    std::vector<std::string> longer = *names;
    longer.resize(static_cast<size_t>(dict.batch_shape_.rank()));
    dict.dim_names_ =
        std::make_shared<const std::vector<std::string>>(std::move(longer));
  }
  return dict;
}

absl::Status TensorDict::Delete(absl::string_view key) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Delete"));
  absl::string_view rest;
  if (const LazyStack* stack = Internal::FindLazyStack(*this, key, &rest)) {
    LazyStack changed = *stack;
    RILL_RETURN_IF_ERROR(changed.Delete(rest));
    const absl::string_view holder =
        key.substr(0, key.size() - rest.size() - 1);
    const_cast<Entry*>(Internal::FindEntry(*this, holder))->value =
        Internal::ValueOf(std::move(changed));
    return absl::OkStatus();
  }
  const Entry* entry = Internal::FindEntry(*this, key);
  if (entry == nullptr) {
    return Internal::MissingKey(*this, "TensorDict::Delete", key);
  }
  auto* level = const_cast<TensorDict*>(Internal::LevelOf(*this, key));
  const auto place = level->entries_.begin() + (entry - level->entries_.data());
  Internal::KeepSpare(level, std::move(place->name), std::move(place->value));
  level->entries_.erase(place);
  return absl::OkStatus();
}

absl::Status TensorDict::Rename(absl::string_view from, absl::string_view to) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Rename"));
  // An error leaves all as it was: the new key is checked before anything is
  // changed.
  const Entry* entry = Internal::FindEntry(*this, from);
  if (entry == nullptr) {
    return Internal::MissingKey(*this, "TensorDict::Rename", from);
  }
  RILL_RETURN_IF_ERROR(CheckKey(to));
  if (from == to) return absl::OkStatus();
  absl::string_view from_parent, from_tail, to_parent, to_tail;
  SplitKeyTail(from, &from_parent, &from_tail);
  SplitKeyTail(to, &to_parent, &to_tail);
  auto* const level = const_cast<TensorDict*>(Internal::LevelOf(*this, from));
  const auto place = level->entries_.begin() + (entry - level->entries_.data());
  if (from_parent == to_parent && !Contains(to)) {
    std::string name = Internal::TakeSpare(level, to_tail).name;
    std::swap(place->name, name);  // Keeps its place.
    Internal::KeepSpare(level, std::move(name), Tensor());
    return absl::OkStatus();
  }
  // To another dictionary, or over an entry that is there. It is taken out
  // first, as `to` may lie below `from`.
  Entry taken = std::move(*place);
  const auto behind = level->entries_.erase(place);
  auto* const target = const_cast<Entry*>(Internal::FindEntry(*this, to));
  Entry::Value before;
  if (target != nullptr) before = std::move(target->value);
  const absl::Status status =
      Internal::SetValue(this, to, std::move(taken.value));
  if (!status.ok()) {
    if (target != nullptr) target->value = std::move(before);
    level->entries_.insert(behind, std::move(taken));
    return status;
  }
  // A dictionary that was at `to` serves `from`, unless that was inside it.
  if (from.size() <= to.size() || from[to.size()] != '/' ||
      !absl::StartsWith(from, to)) {
    Internal::KeepSpare(level, std::move(taken.name), std::move(before));
  }
  return absl::OkStatus();
}

absl::Status TensorDict::Update(const TensorDict& other) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::Update"));
  // Merged in a copy, so that an error leaves this dictionary as it was.
  TensorDict changed = *this;
  const auto merge = [&changed](auto&& self, const TensorDict& from,
                                const std::string& prefix) -> absl::Status {
    for (const Entry& entry : from.entries_) {
      const std::string key = absl::StrCat(prefix, entry.name);
      if (entry.dict() != nullptr && changed.FindDict(key) != nullptr) {
        RILL_RETURN_IF_ERROR(self(self, *entry.dict(), key + "/"));
      } else {
        RILL_RETURN_IF_ERROR(
            Internal::SetValue(&changed, key, Entry::CopyOf(entry.value)));
      }
    }
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(merge(merge, other, ""));
  *this = std::move(changed);
  return absl::OkStatus();
}

void TensorDict::Internal::VisitLeaves(
    const TensorDict& dict, WalkedKey* key,
    absl::FunctionRef<void(absl::string_view, const Tensor&)> fn) {
  const size_t above = key->size();
  for (const Entry& entry : dict.entries_) {
    const absl::string_view text = key->Replace(above, entry.name);
    if (const Tensor* tensor = entry.tensor()) {
      fn(text, *tensor);
    } else if (const TensorDict* nested = entry.dict()) {
      key->Replace(text.size(), "/");
      VisitLeaves(*nested, key, fn);
    }
  }
}

void TensorDict::ForEachLeaf(
    absl::FunctionRef<void(absl::string_view key, const Tensor&)> fn) const {
  Internal::WalkedKey key;
  Internal::VisitLeaves(*this, &key, fn);
}

void TensorDict::Internal::DeleteIf(
    TensorDict* dict, WalkedKey* key,
    absl::FunctionRef<bool(absl::string_view, const TensorDict*)> drops) {
  const size_t above = key->size();
  size_t kept = 0;
  for (Entry& entry : dict->entries_) {
    absl::string_view text = key->Replace(above, entry.name);
    TensorDict* const nested = entry.dict();
    if (nested != nullptr) {
      const size_t size = text.size();
      key->Replace(size, "/");
      DeleteIf(nested, key, drops);
      text = key->Replace(size, "");
    }
    if (drops(text, nested)) {
      KeepSpare(dict, std::move(entry.name), std::move(entry.value));
      continue;
    }
    Entry& place = dict->entries_[kept++];
    if (&place != &entry) place = std::move(entry);
  }
  dict->entries_.erase(dict->entries_.begin() + static_cast<ptrdiff_t>(kept),
                       dict->entries_.end());
}

absl::Status TensorDict::DeleteIf(
    absl::FunctionRef<bool(absl::string_view key, const TensorDict* dict)>
        drops) {
  RILL_RETURN_IF_ERROR(Internal::CheckUnlocked(*this, "TensorDict::DeleteIf"));
  Internal::WalkedKey key;
  Internal::DeleteIf(this, &key, drops);
  return absl::OkStatus();
}

std::vector<std::string> TensorDict::LeafKeys() const {
  std::vector<std::string> keys;
  ForEachLeaf([&keys](absl::string_view key, const Tensor&) {
    keys.emplace_back(key);
  });
  return keys;
}

void TensorDict::ForEachEntry(
    absl::FunctionRef<void(absl::string_view key, EntryKind kind)> fn) const {
  for (const Entry& entry : entries_) fn(entry.name, entry.kind());
}

std::vector<std::string> TensorDict::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) keys.push_back(entry.name);
  return keys;
}

// Walks both dictionaries. It is called twice: without `copies` it checks
// everything and collects the values to be replaced, then it copies. So an
// error leaves all bytes as they were. `changes` is null inside a lazy stack,
// whose members cannot get other values.
absl::Status TensorDict::Internal::CopyElements(const TensorDict& from,
                                                const TensorDict& to,
                                                const Path* up, bool copies,
                                                Changes* changes) {
  for (size_t i = 0; i < from.entries_.size(); ++i) {
    const Entry& entry = from.entries_[i];
    const Path path = {up, entry.name};
    Entry* const target = const_cast<Entry*>(FindHere(to, entry.name, i));
    if (target == nullptr) {
      return NotFound(
          "TensorDict::CopyFrom: no key \"", path.ToString(), "\", ",
          up == nullptr ? "" : absl::StrCat("in \"", up->ToString(), "\" "),
          "there are: ", KeysText(to));
    }
    absl::Status status;
    if (entry.family() != target->family()) {
      status = Differs("kind", Entry::KindText(entry.kind()),
                       Entry::KindText(target->kind()));
    } else if (const Tensor* leaf = entry.tensor()) {
      status = copies ? target->tensor()->CopyFrom(*leaf)
                      : target->tensor()->CheckCopyFrom(*leaf);
    } else if (const TensorDict* nested = entry.dict()) {
      RILL_RETURN_IF_ERROR(
          CopyElements(*nested, *target->dict(), &path, copies, changes));
    } else {
      RILL_ASSIGN_OR_RETURN(const bool replaces,
                            target->other()->CopyFrom(
                                *entry.other(), to.batch_shape_, copies, path));
      if (replaces && changes != nullptr && !copies) {
        changes->push_back({target, entry.other()->shared_from_this()});
      } else if (replaces && changes == nullptr &&
                 !CompareEntries(entry, *target, path, {}).ok()) {
        status = Differs("value inside a lazy stack", EntryText(entry),
                         EntryText(*target));
      }
    }
    if (!status.ok()) return WithKey(status, path);
  }
  return absl::OkStatus();
}

absl::Status TensorDict::CopyFrom(const TensorDict& other) {
  Internal::Changes changes;
  // The first call checks, the second copies and cannot be refused.
  RILL_RETURN_IF_ERROR(
      Internal::CopyElements(other, *this, nullptr, false, &changes));
  RILL_RETURN_IF_ERROR(
      Internal::CopyElements(other, *this, nullptr, true, &changes));
  if (!changes.empty()) Internal::Commit(std::move(changes));
  return absl::OkStatus();
}

absl::Status TensorDict::SetInPlace(absl::string_view key,
                                    const Tensor& tensor) const {
  absl::string_view rest;
  if (const LazyStack* stack = Internal::FindLazyStack(*this, key, &rest)) {
    return stack->SetInPlace(rest, tensor);
  }
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::SetInPlace", key,
                                           EntryKind::kTensor));
  RILL_RETURN_IF_ERROR(entry->tensor()->CopyFrom(tensor))
      << "at key \"" << key << "\"";
  return absl::OkStatus();
}

absl::Status TensorDict::SetAt(absl::string_view key, int64_t row,
                               const Tensor& tensor) const {
  if (batch_shape_.rank() == 0) {
    return InvalidArgument(
        "TensorDict::SetAt: rank of the batch shape: got 0, want at least 1");
  }
  absl::string_view rest;
  if (const LazyStack* stack = Internal::FindLazyStack(*this, key, &rest)) {
    if (stack->stack_dim() == 0) {
      RILL_ASSIGN_OR_RETURN(const TensorDict member, stack->Member(row));
      return member.SetInPlace(rest, tensor);
    }
    RILL_ASSIGN_OR_RETURN(const LazyStack rows, stack->SelectDim(0, row));
    return rows.SetInPlace(rest, tensor);
  }
  RILL_ASSIGN_OR_RETURN(
      const Entry* entry,
      Internal::FindKind(*this, "TensorDict::SetAt", key, EntryKind::kTensor));
  RILL_ASSIGN_OR_RETURN(const Tensor place, entry->tensor()->Index(row));
  RILL_RETURN_IF_ERROR(place.CopyFrom(tensor)) << "at key \"" << key << "\"";
  return absl::OkStatus();
}

}  // namespace rill
