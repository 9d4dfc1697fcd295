// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/remove_empty_specs.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// Adds the keys of empty dictionaries, inner ones before outer ones. False
// where `dict` itself is empty.
bool FindEmpty(const TensorDict& dict, absl::string_view prefix,
               std::vector<std::string>* empty) {
  bool holds_something = false;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    const std::string path = absl::StrCat(prefix, key);
    if (kind != EntryKind::kDict ||
        FindEmpty(*dict.FindDict(key), absl::StrCat(path, "/"), empty)) {
      holds_something = true;
    } else {
      empty->push_back(path);
    }
  });
  return holds_something;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoveEmptySpecs>> RemoveEmptySpecs::Create() {
  return std::make_unique<RemoveEmptySpecs>();
}

absl::Status RemoveEmptySpecs::Forward(TensorDict* batch,
                                       TensorDict* /*state*/) const {
  std::vector<std::string> empty;
  FindEmpty(*batch, "", &empty);
  for (const std::string& key : empty) {
    RILL_RETURN_IF_ERROR(batch->Delete(key)) << "in RemoveEmptySpecs";
  }
  return absl::OkStatus();
}

}  // namespace rill
