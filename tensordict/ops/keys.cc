// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/keys.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

absl::Status CheckSeparator(absl::string_view caller,
                            absl::string_view separator) {
  if (!separator.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": separator: got none, want at least a byte"));
}

absl::Status Collision(absl::string_view caller, absl::string_view a,
                       absl::string_view b, absl::string_view both) {
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": got keys \"", a, "\" and \"", b,
      "\", want them to stay apart; both would be \"", both, "\""));
}

// Sets the entry `key` of `from`, of whatever kind, as `to_key` of `to`.
absl::Status CopyEntry(const TensorDict& from, absl::string_view key,
                       absl::string_view to_key, TensorDict* to) {
  if (const Tensor* tensor = from.Find(key)) return to->Set(to_key, *tensor);
  if (const TensorDict* dict = from.FindDict(key))
    return to->Set(to_key, *dict);
  RILL_ASSIGN_OR_RETURN(TensorDict alone, from.Select({key}));
  RILL_RETURN_IF_ERROR(alone.Rename(key, to_key));
  return to->Update(alone);
}

// The entries of all levels for which keep(key, level) holds, inner levels
// first.
absl::StatusOr<TensorDict> Filter(
    const TensorDict& dict,
    absl::FunctionRef<bool(absl::string_view key, const TensorDict& of)> keep) {
  TensorDict result = dict;
  for (const std::string& key : dict.Keys()) {
    if (const TensorDict* nested = dict.FindDict(key)) {
      RILL_ASSIGN_OR_RETURN(TensorDict filtered, Filter(*nested, keep));
      RILL_RETURN_IF_ERROR(result.Set(key, std::move(filtered)));
    } else if (dict.Kind(key) == EntryKind::kLazyStack) {
      RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(key));
      RILL_ASSIGN_OR_RETURN(
          LazyStack filtered,
          stack.MapMembers(stack.stack_dim(), [&](const TensorDict& member) {
            return Filter(member, keep);
          }));
      RILL_RETURN_IF_ERROR(result.Set(key, std::move(filtered)));
    }
    if (keep(key, result)) continue;
    RILL_RETURN_IF_ERROR(result.Delete(key));
  }
  return result;
}

}  // namespace

absl::StatusOr<TensorDict> FlattenKeys(const TensorDict& dict,
                                       absl::string_view separator) {
  RILL_RETURN_IF_ERROR(CheckSeparator("ops::FlattenKeys", separator));
  TensorDict result(dict.batch_shape());
  std::map<std::string, std::string> origins;
  const auto flatten = [&](auto&& self, const TensorDict& level,
                           const std::string& prefix,
                           const std::string& path) -> absl::Status {
    for (const std::string& name : level.Keys()) {
      RILL_ASSIGN_OR_RETURN(const std::vector<std::string> component,
                            SplitKey(name));
      const std::string flat = absl::StrCat(prefix, component[0]);
      const std::string origin = absl::StrCat(path, name);
      if (const TensorDict* nested = level.FindDict(name)) {
        RILL_RETURN_IF_ERROR(self(self, *nested, absl::StrCat(flat, separator),
                                  absl::StrCat(origin, "/")));
        continue;
      }
      const std::string key = EscapeKeyComponent(flat);
      const auto [other, is_new] = origins.insert({key, origin});
      if (!is_new) {
        return Collision("ops::FlattenKeys", other->second, origin, key);
      }
      RILL_RETURN_IF_ERROR(CopyEntry(level, name, key, &result));
    }
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(flatten(flatten, dict, "", ""));
  return result;
}

absl::StatusOr<TensorDict> UnflattenKeys(const TensorDict& dict,
                                         absl::string_view separator) {
  RILL_RETURN_IF_ERROR(CheckSeparator("ops::UnflattenKeys", separator));
  TensorDict result(dict.batch_shape());
  std::map<std::string, std::string> origins;  // Of entries, by their new key.
  // The key that made the entry at `key` or below it.
  const auto origin_of = [&](const std::string& key) {
    auto found = origins.find(key);
    if (found == origins.end()) found = origins.lower_bound(key + "/");
    return found != origins.end() && absl::StartsWith(found->first, key)
               ? found->second
               : key;
  };
  for (const std::string& name : dict.Keys()) {
    RILL_ASSIGN_OR_RETURN(const std::vector<std::string> component,
                          SplitKey(name));
    const std::vector<absl::string_view> parts =
        absl::StrSplit(component[0], absl::ByString(separator));
    const std::string key = JoinKey(parts);
    if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ops::UnflattenKeys: key \"", name, "\": got an empty part beside \"",
          separator, "\", want none"));
    }
    // A part of the way that is an entry already, or a dictionary that is.
    for (size_t n = 1; n < parts.size(); ++n) {
      const std::string parent = JoinKey(absl::MakeConstSpan(parts).first(n));
      if (result.Contains(parent) && result.FindDict(parent) == nullptr) {
        return Collision("ops::UnflattenKeys", origin_of(parent), name, parent);
      }
    }
    const TensorDict* nested = dict.FindDict(name);
    if (nested != nullptr && result.FindDict(key) != nullptr) {
      // "a.b" came before "a": both are dictionaries.
      for (const std::string& inner : nested->Keys()) {
        const std::string both = absl::StrCat(key, "/", inner);
        if (result.Contains(both)) {
          return Collision("ops::UnflattenKeys", origin_of(both),
                           absl::StrCat(name, "/", inner), both);
        }
        RILL_RETURN_IF_ERROR(CopyEntry(*nested, inner, both, &result));
      }
      continue;
    }
    if (result.Contains(key)) {
      return Collision("ops::UnflattenKeys", origin_of(key), name, key);
    }
    RILL_RETURN_IF_ERROR(CopyEntry(dict, name, key, &result));
    origins[key] = name;
  }
  return result;
}

absl::StatusOr<std::vector<TensorDict>> SplitKeys(
    const TensorDict& dict,
    absl::Span<const std::vector<absl::string_view>> key_sets, bool strict) {
  std::vector<TensorDict> parts;
  TensorDict rest = dict;
  for (const std::vector<absl::string_view>& keys : key_sets) {
    RILL_ASSIGN_OR_RETURN(TensorDict part, Separate(&rest, keys, strict));
    parts.push_back(std::move(part));
  }
  parts.push_back(std::move(rest));
  return parts;
}

absl::StatusOr<TensorDict> Separate(TensorDict* dict,
                                    absl::Span<const absl::string_view> keys,
                                    bool strict) {
  if (dict == nullptr) {
    return absl::InvalidArgumentError("ops::Separate: dict is null");
  }
  if (dict->is_locked()) {
    return absl::FailedPreconditionError(
        "ops::Separate: the dictionary is locked");
  }
  RILL_ASSIGN_OR_RETURN(TensorDict taken, dict->Select(keys, strict));
  RILL_ASSIGN_OR_RETURN(*dict, dict->Exclude(keys));
  return taken;
}

absl::StatusOr<TensorDict> FilterNonTensor(const TensorDict& dict) {
  return Filter(dict, [](absl::string_view key, const TensorDict& of) {
    const EntryKind kind = *of.Kind(key);
    return kind != EntryKind::kNonTensor && kind != EntryKind::kNonTensorStack;
  });
}

absl::StatusOr<TensorDict> FilterEmpty(const TensorDict& dict) {
  return Filter(dict, [](absl::string_view key, const TensorDict& of) {
    const TensorDict* nested = of.FindDict(key);
    return nested == nullptr || !nested->empty();
  });
}

absl::StatusOr<TensorDict> Replace(const TensorDict& dict,
                                   const TensorDict& other) {
  TensorDict result = dict;
  RILL_RETURN_IF_ERROR(result.Update(other)) << "in ops::Replace";
  return result;
}

absl::StatusOr<TensorDict> WithoutEntries(const TensorDict& dict,
                                          bool recurse) {
  return Filter(dict, [&](absl::string_view key, const TensorDict& of) {
    return recurse && of.FindDict(key) != nullptr;
  });
}

absl::StatusOr<TensorDict> SortKeys(const TensorDict& dict) {
  std::vector<std::string> names = dict.Keys();
  std::sort(names.begin(), names.end());
  const std::vector<absl::string_view> keys(names.begin(), names.end());
  RILL_ASSIGN_OR_RETURN(TensorDict result, dict.Select(keys));
  for (const absl::string_view key : keys) {
    if (const TensorDict* nested = result.FindDict(key)) {
      RILL_ASSIGN_OR_RETURN(TensorDict sorted, SortKeys(*nested));
      RILL_RETURN_IF_ERROR(result.Set(key, std::move(sorted)));
    }
  }
  return result;
}

}  // namespace rill::ops
