// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/keys.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::ops {
namespace {

// Sets the entry `key` of `from`, of whatever kind, as `to_key` of `to`.
absl::Status CopyEntry(const TensorDict& from, absl::string_view key,
                       absl::string_view to_key, TensorDict* to) {
  if (const Tensor* tensor = from.Find(key)) return to->Set(to_key, *tensor);
  RILL_ASSIGN_OR_RETURN(TensorDict alone, from.Select({key}));
  RILL_RETURN_IF_ERROR(alone.Rename(key, to_key));
  return to->Update(alone);
}

}  // namespace

absl::StatusOr<TensorDict> FlattenKeys(const TensorDict& dict,
                                       absl::string_view separator) {
  if (separator.empty()) {
    return absl::InvalidArgumentError(
        "ops::FlattenKeys: separator: got none, want at least a byte");
  }
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
        return absl::InvalidArgumentError(absl::StrCat(
            "ops::FlattenKeys: got keys \"", other->second, "\" and \"", origin,
            "\", want them to stay apart; both would be \"", key, "\""));
      }
      RILL_RETURN_IF_ERROR(CopyEntry(level, name, key, &result));
    }
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(flatten(flatten, dict, "", ""));
  return result;
}

absl::StatusOr<std::vector<TensorDict>> SplitKeys(
    const TensorDict& dict,
    absl::Span<const std::vector<absl::string_view>> key_sets, bool strict) {
  std::vector<TensorDict> parts;
  TensorDict rest = dict;
  for (const std::vector<absl::string_view>& keys : key_sets) {
    RILL_ASSIGN_OR_RETURN(TensorDict part, rest.Select(keys, strict));
    parts.push_back(std::move(part));
    RILL_ASSIGN_OR_RETURN(rest, rest.Exclude(keys));
  }
  parts.push_back(std::move(rest));
  return parts;
}

}  // namespace rill::ops
