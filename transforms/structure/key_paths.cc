// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/key_paths.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"

namespace rill::transforms_internal {

bool IsAtOrBelow(absl::string_view key, absl::string_view top) {
  // The prefix has to be followed by the end or a component: "next/rewards" is
  // not below "next/reward".
  return absl::ConsumePrefix(&key, top) && (key.empty() || key[0] == '/');
}

bool IsAtOrBelowAny(absl::string_view key, absl::Span<const std::string> tops) {
  return absl::c_any_of(
      tops, [&](absl::string_view top) { return IsAtOrBelow(key, top); });
}

absl::string_view RootOf(absl::string_view key) {
  return absl::StripPrefix(key, "next/");
}

std::vector<std::string> RootsOf(absl::Span<const std::string> keys) {
  std::vector<std::string> roots;
  for (const std::string& key : keys) roots.emplace_back(RootOf(key));
  return roots;
}

// By the last components of TED's keys, of the root and below next.
bool IsFlag(absl::string_view key) {
  const absl::string_view root = RootOf(key);
  return root == "done" || root == "terminated" || root == "truncated";
}

bool IsReward(absl::string_view key) { return RootOf(key) == "reward"; }

bool IsFixedInSteps(absl::string_view key) {
  return IsFlag(key) || IsReward(key) || key == "action";
}

TensorDictSpec KeptPart(const TensorDictSpec& spec,
                        absl::FunctionRef<bool(absl::string_view)> keeps) {
  TensorDictSpec result = spec;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    if (!keeps(leaf.key)) result.Erase(leaf.key);
  }
  for (const TensorDictSpec::NonTensorLeaf& value : spec.non_tensors()) {
    if (!keeps(value.key)) result.Erase(value.key);
  }
  return result;
}

absl::Status CheckHas(absl::string_view caller, absl::string_view top,
                      const TensorDictSpec& spec) {
  std::vector<std::string> keys = spec.LeafKeys();
  for (const auto& value : spec.non_tensors()) keys.push_back(value.key);
  for (const std::string& key : keys) {
    if (IsAtOrBelow(key, top)) return absl::OkStatus();
  }
  return NotFound(caller, ": no entry \"", top, "\", there are [",
                  absl::StrJoin(keys, ", "), "]");
}

absl::Status CheckHas(absl::string_view caller, absl::string_view key,
                      const TensorDict& batch) {
  if (batch.Contains(key)) return absl::OkStatus();
  return NotFound(caller, ": no entry \"", key, "\", there are [",
                  absl::StrJoin(batch.LeafKeys(), ", "), "]");
}

absl::Status CheckNoLeafAbove(absl::string_view caller, absl::string_view key,
                              const TensorDict& batch) {
  for (size_t slash = key.find('/'); slash != absl::string_view::npos;
       slash = key.find('/', slash + 1)) {
    const absl::string_view above = key.substr(0, slash);
    const std::optional<EntryKind> kind = batch.Kind(above);
    if (!kind.has_value() || *kind == EntryKind::kDict ||
        *kind == EntryKind::kLazyStack) {
      continue;
    }
    return InvalidArgument(caller, ": \"", key, "\": got a leaf \"", above,
                           "\", want a dictionary or no entry there");
  }
  return absl::OkStatus();
}

absl::Status CheckMaySet(absl::string_view caller, absl::string_view key,
                         const TensorDict& batch) {
  const TensorDict* const dict = batch.FindDict(key);
  if (dict != nullptr && !dict->empty()) {
    return InvalidArgument(caller, ": \"", key,
                           "\": got a dictionary, want a leaf or no entry");
  }
  return CheckNoLeafAbove(caller, key, batch);
}

absl::Status CheckCanBeLeaves(absl::string_view caller,
                              absl::string_view option,
                              absl::Span<const std::string> keys) {
  for (const std::string& key : keys) {
    for (const std::string& above : keys) {
      if (&key == &above || !IsAtOrBelow(key, above)) continue;
      return InvalidArgument(caller, ": ", option, ": got \"", key,
                             "\" beside \"", above,
                             "\", want each to be a leaf, none below another");
    }
  }
  return absl::OkStatus();
}

absl::Status DropEmptyAround(absl::string_view key, TensorDict* batch) {
  for (size_t slash = key.rfind('/'); slash != absl::string_view::npos;
       slash = key.rfind('/')) {
    key = key.substr(0, slash);
    const TensorDict* const parent = batch->FindDict(key);
    if (parent == nullptr || !parent->empty()) break;
    RILL_RETURN_IF_ERROR(batch->Delete(key));
  }
  return absl::OkStatus();
}

absl::Status DeleteEntry(absl::string_view key, TensorDict* batch) {
  RILL_RETURN_IF_ERROR(batch->Delete(key));
  return DropEmptyAround(key, batch);
}

}  // namespace rill::transforms_internal
