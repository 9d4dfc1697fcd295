// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Whether `key` is below the dictionary `above`.
bool IsBelow(absl::string_view key, absl::string_view above) {
  return key.size() > above.size() && key[above.size()] == '/' &&
         absl::StartsWith(key, above);
}

// Keys of `spec` without an entry in `dict`, and leaves of `dict` without a
// spec.
absl::Status CheckKeys(absl::string_view caller, const TensorDictSpec& spec,
                       const TensorDict& dict, bool allow_extra) {
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    if (dict.Find(leaf.key) == nullptr) missing.push_back(leaf.key);
  }
  for (const TensorDictSpec::NonTensorLeaf& leaf : spec.non_tensors()) {
    const std::optional<EntryKind> kind = dict.Kind(leaf.key);
    if (kind != EntryKind::kNonTensor && kind != EntryKind::kNonTensorStack) {
      missing.push_back(leaf.key);
    }
  }
  if (!allow_extra) {
    dict.ForEachLeaf([&](absl::string_view key, const Tensor&) {
      if (spec.Find(key) == nullptr) extra.emplace_back(key);
    });
  }
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::vector<std::string> want = spec.LeafKeys();
  for (const TensorDictSpec::NonTensorLeaf& leaf : spec.non_tensors()) {
    want.push_back(absl::StrCat(leaf.key, " (not a tensor)"));
  }
  return InvalidArgument(caller, ": keys: missing ", ListKeys(missing),
                         ", too many ", ListKeys(extra), "; got ",
                         ListKeys(dict.LeafKeys()), ", want ", ListKeys(want));
}

absl::Status WithCaller(absl::string_view caller, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(caller, ": ", status.message()));
}

}  // namespace

// A dictionary's tensors say layouts and no domains.
TensorDictSpec TensorDictSpec::Of(const TensorDict& dict) {
  TensorDictSpec spec;
  const int batch_rank = dict.batch_shape().rank();
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    spec.leaves_.push_back(
        {std::string(key),
         LeafSpec::Unbounded(leaf.dtype(), leaf.shape().Suffix(batch_rank))});
  });
  return spec;
}

// A key may not be both a leaf and a dictionary of others. O(leaves).
absl::Status TensorDictSpec::CheckKeyIsFree(absl::string_view caller,
                                            absl::string_view key) const {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  for (const std::string& other : AllKeys()) {
    if (!IsBelow(other, key) && !IsBelow(key, other)) continue;
    return InvalidArgument(
        caller, ": key: got \"", key, "\" beside \"", other,
        "\", want each key to be a leaf or a dictionary, not both");
  }
  return absl::OkStatus();
}

std::vector<std::string> TensorDictSpec::AllKeys() const {
  std::vector<std::string> keys = LeafKeys();
  for (const NonTensorLeaf& leaf : non_tensors_) keys.push_back(leaf.key);
  return keys;
}

absl::Status TensorDictSpec::Set(absl::string_view key, LeafSpec spec) {
  RILL_RETURN_IF_ERROR(CheckKeyIsFree("TensorDictSpec::Set", key));
  if (absl::Status status = spec.CheckDomain(); !status.ok()) {
    return WithCaller(
        absl::StrCat("TensorDictSpec::Set: domain of \"", key, "\""), status);
  }
  // A leaf replaces a value of the same key, and keeps its place among the
  // leaves.
  std::erase_if(non_tensors_,
                [key](const NonTensorLeaf& leaf) { return leaf.key == key; });
  for (Leaf& leaf : leaves_) {
    if (leaf.key != key) continue;
    leaf.spec = std::move(spec);
    return absl::OkStatus();
  }
  leaves_.push_back({std::string(key), std::move(spec)});
  return absl::OkStatus();
}

absl::Status TensorDictSpec::Set(absl::string_view key,
                                 const TensorDictSpec& nested) {
  // Set in a copy, so that an error leaves this spec as it was.
  TensorDictSpec all = *this;
  for (const Leaf& leaf : nested.leaves_) {
    RILL_RETURN_IF_ERROR(all.Set(absl::StrCat(key, "/", leaf.key), leaf.spec));
  }
  for (const NonTensorLeaf& leaf : nested.non_tensors_) {
    RILL_RETURN_IF_ERROR(
        all.SetNonTensor(absl::StrCat(key, "/", leaf.key), leaf.example));
  }
  *this = std::move(all);
  return absl::OkStatus();
}

absl::Status TensorDictSpec::SetNonTensor(absl::string_view key,
                                          NonTensor example) {
  RILL_RETURN_IF_ERROR(CheckKeyIsFree("TensorDictSpec::SetNonTensor", key));
  Erase(key);
  non_tensors_.push_back({std::string(key), std::move(example)});
  return absl::OkStatus();
}

absl::Status TensorDictSpec::SetMask(absl::string_view key,
                                     const Tensor& mask) {
  for (Leaf& leaf : leaves_) {
    if (leaf.key != key) continue;
    absl::StatusOr<LeafSpec> masked = leaf.spec.WithMask(mask);
    if (!masked.ok()) {
      return WithCaller(absl::StrCat("TensorDictSpec::SetMask: \"", key, "\""),
                        masked.status());
    }
    leaf.spec = *std::move(masked);
    return absl::OkStatus();
  }
  return NotFound("TensorDictSpec::SetMask: key: got \"", key,
                  "\", want one of ", ListKeys(AllKeys()));
}

std::vector<std::string> TensorDictSpec::LeafKeys() const {
  std::vector<std::string> keys;
  for (const Leaf& leaf : leaves_) keys.push_back(leaf.key);
  return keys;
}

// Linear: specs have few leaves.
const LeafSpec* TensorDictSpec::Find(absl::string_view key) const {
  for (const Leaf& leaf : leaves_) {
    if (leaf.key == key) return &leaf.spec;
  }
  return nullptr;
}

absl::StatusOr<TensorDictSpec> TensorDictSpec::Nested(
    absl::string_view key) const {
  const std::string start = absl::StrCat(key, "/");
  TensorDictSpec nested;
  nested.device_ = device_;
  for (const Leaf& leaf : leaves_) {
    if (!absl::StartsWith(leaf.key, start)) continue;
    nested.leaves_.push_back({leaf.key.substr(start.size()), leaf.spec});
  }
  for (const NonTensorLeaf& leaf : non_tensors_) {
    if (!absl::StartsWith(leaf.key, start)) continue;
    nested.non_tensors_.push_back(
        {leaf.key.substr(start.size()), leaf.example});
  }
  if (!nested.empty()) return nested;
  return NotFound("TensorDictSpec::Nested: key: got \"", key,
                  "\", want a dictionary of ", ListKeys(AllKeys()));
}

void TensorDictSpec::Erase(absl::string_view key) {
  std::erase_if(leaves_, [key](const Leaf& leaf) { return leaf.key == key; });
  std::erase_if(non_tensors_,
                [key](const NonTensorLeaf& leaf) { return leaf.key == key; });
}

absl::Status TensorDictSpec::CheckLayout(absl::string_view caller,
                                         const TensorDict& dict) const {
  RILL_RETURN_IF_ERROR(CheckKeys(caller, *this, dict, /*allow_extra=*/false));
  for (const Leaf& leaf : leaves_) {
    absl::Status status = leaf.spec.CheckLayout(leaf.key, dict.batch_shape(),
                                                *dict.Find(leaf.key));
    if (!status.ok()) return WithCaller(caller, status);
  }
  return absl::OkStatus();
}

absl::Status TensorDictSpec::CheckValues(absl::string_view caller,
                                         const TensorDict& dict,
                                         bool allow_extra) const {
  RILL_RETURN_IF_ERROR(CheckKeys(caller, *this, dict, allow_extra));
  for (const Leaf& leaf : leaves_) {
    absl::Status status = leaf.spec.CheckValues(leaf.key, dict.batch_shape(),
                                                *dict.Find(leaf.key));
    if (!status.ok()) return WithCaller(caller, status);
  }
  return absl::OkStatus();
}

std::string TensorDictSpec::ToString() const {
  std::vector<std::string> texts;
  for (const Leaf& leaf : leaves_) {
    texts.push_back(absl::StrCat(leaf.key, ": ", leaf.spec.ToString()));
  }
  for (const NonTensorLeaf& leaf : non_tensors_) {
    texts.push_back(absl::StrCat(leaf.key, ": not a tensor"));
  }
  const std::string where = device_.has_value() && !device_->is_cpu()
                                ? absl::StrCat(" on ", device_->ToString())
                                : "";
  return absl::StrCat("{", absl::StrJoin(texts, ", "), "}", where);
}

absl::StatusOr<TensorDictSpec> TensorDictSpec::MapLeaves(
    absl::FunctionRef<absl::StatusOr<LeafSpec>(absl::string_view key,
                                               const LeafSpec&)>
        fn) const {
  TensorDictSpec result = *this;
  for (Leaf& leaf : result.leaves_) {
    absl::StatusOr<LeafSpec> spec = fn(leaf.key, leaf.spec);
    // Results are checked as Set checks, since `fn` may make any domain.
    absl::Status status = spec.ok() ? spec->CheckDomain() : spec.status();
    if (!status.ok()) {
      return WithCaller(
          absl::StrCat("TensorDictSpec::MapLeaves: \"", leaf.key, "\""),
          status);
    }
    leaf.spec = *std::move(spec);
  }
  return result;
}

absl::StatusOr<TensorDictSpec> TensorDictSpec::Index(int64_t index) const {
  return MapLeaves([index](absl::string_view, const LeafSpec& leaf) {
    return leaf.Index(index);
  });
}

}  // namespace rill
