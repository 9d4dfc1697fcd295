// SPDX-License-Identifier: Apache-2.0
// TensorDict's changes of bytes where they lie.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"

namespace rill {
namespace {

// Checks only, or copies.
absl::Status CopyTensor(const Tensor& from, const Tensor& to, bool copies) {
  return copies ? to.CopyFrom(from) : to.CheckCopyFrom(from);
}

absl::Status Differs(absl::string_view what, absl::string_view got,
                     absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      "TensorDict::CopyFrom: ", what, ": got ", got, ", want ", want));
}

absl::Status CopyRows(const RaggedTensor& from, const RaggedTensor& to,
                      bool copies) {
  RILL_ASSIGN_OR_RETURN(const bool same, from.shapes().BitEquals(to.shapes()));
  if (!same) {
    return Differs("shapes of rows", from.DebugString(), to.DebugString());
  }
  return CopyTensor(from.values(), to.values(), copies);
}

}  // namespace

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
      return absl::NotFoundError(absl::StrCat(
          "TensorDict::CopyFrom: no key \"", path.ToString(), "\", ",
          up == nullptr ? "" : absl::StrCat("in \"", up->ToString(), "\" "),
          "there are: ", KeysText(to)));
    }
    absl::Status status;
    if (entry.is_non_tensor() && target->is_non_tensor()) {
      const NonTensorStack* values = entry.non_tensor_stack();
      if (values != nullptr && !(values->shape() == to.batch_shape_)) {
        status = Differs("shape", values->shape().ToString(),
                         to.batch_shape_.ToString());
      } else if (changes != nullptr && !copies) {
        changes->push_back({target, Entry::CopyOf(entry.value)});
      } else if (changes == nullptr && !SameNonTensor(entry, *target)) {
        status = Differs("value inside a lazy stack", EntryText(entry),
                         EntryText(*target));
      }
    } else if (entry.kind() != target->kind()) {
      status = Differs("kind", Entry::KindText(entry.kind()),
                       Entry::KindText(target->kind()));
    } else if (const Tensor* leaf = entry.tensor()) {
      status = CopyTensor(*leaf, *target->tensor(), copies);
    } else if (const TensorDict* nested = entry.dict()) {
      RILL_RETURN_IF_ERROR(
          CopyElements(*nested, *target->dict(), &path, copies, changes));
    } else if (const RaggedTensor* rows = entry.ragged()) {
      status = CopyRows(*rows, *target->ragged(), copies);
    } else {
      const LazyStack& source = *entry.lazy_stack();
      const LazyStack& stack = *target->lazy_stack();
      if (source.size() != stack.size() ||
          source.stack_dim() != stack.stack_dim()) {
        status = Differs("lazy stack", source.batch_shape().ToString(),
                         stack.batch_shape().ToString());
      }
      for (size_t m = 0; status.ok() && m < source.members().size(); ++m) {
        const std::string number = absl::StrCat("[", m, "]");
        const Path member = {&path, number};
        RILL_RETURN_IF_ERROR(CopyElements(
            source.members()[m], stack.members()[m], &member, copies, nullptr));
      }
    }
    if (!status.ok()) return WithKey(status, path);
  }
  return absl::OkStatus();
}

bool TensorDict::Internal::SameNonTensor(const Entry& a, const Entry& b) {
  if (a.kind() != b.kind()) return false;
  return a.non_tensor() != nullptr
             ? *a.non_tensor() == *b.non_tensor()
             : *a.non_tensor_stack() == *b.non_tensor_stack();
}

absl::Status TensorDict::CopyFrom(const TensorDict& other) {
  Internal::Changes changes;
  // The first call checks, the second copies and cannot be refused.
  RILL_RETURN_IF_ERROR(
      Internal::CopyElements(other, *this, nullptr, false, &changes));
  RILL_RETURN_IF_ERROR(
      Internal::CopyElements(other, *this, nullptr, true, &changes));
  Internal::Commit(std::move(changes));
  return absl::OkStatus();
}

absl::Status TensorDict::SetInPlace(absl::string_view key,
                                    const Tensor& tensor) const {
  absl::string_view rest;
  if (const Entry* entry = Internal::FindLazyStack(*this, key, &rest)) {
    return entry->lazy_stack()->SetInPlace(rest, tensor);
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
    return absl::InvalidArgumentError(
        "TensorDict::SetAt: rank of the batch shape: got 0, want at least 1");
  }
  absl::string_view rest;
  if (const Entry* entry = Internal::FindLazyStack(*this, key, &rest)) {
    const LazyStack& stack = *entry->lazy_stack();
    if (stack.stack_dim() == 0) {
      RILL_ASSIGN_OR_RETURN(const TensorDict member, stack.Member(row));
      return member.SetInPlace(rest, tensor);
    }
    RILL_ASSIGN_OR_RETURN(const LazyStack rows, stack.SelectDim(0, row));
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
