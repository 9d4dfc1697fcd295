// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/event_keys.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace rill {
namespace {

// The leaves that say what `key` would: of a "<group>/done" that rows do not
// have, its parts beside it.
std::vector<std::string> PartsOf(absl::string_view key) {
  if (!absl::ConsumeSuffix(&key, "done") ||
      !(key.empty() || absl::EndsWith(key, "/"))) {
    return {};
  }
  return {absl::StrCat(key, "terminated"), absl::StrCat(key, "truncated")};
}

}  // namespace

std::vector<std::string> EventKeys::EndsOf(const TensorDictSpec& rows) const {
  std::vector<std::string> found;
  const auto add = [&](const std::string& key) {
    if (rows.Find(key) == nullptr) return false;
    found.push_back(key);
    return true;
  };
  for (const std::string& key : ends) {
    if (add(key)) continue;
    for (const std::string& part : PartsOf(key)) add(part);
  }
  return found;
}

bool EventKeys::TellTrajectories(const TensorDictSpec& rows) const {
  return !EndsOf(rows).empty() ||
         std::any_of(
             trajectories.begin(), trajectories.end(),
             [&](const std::string& key) { return rows.Find(key) != nullptr; });
}

std::string EventKeys::WantText() const {
  std::string looked_for;
  const auto add = [&looked_for](const std::string& key) {
    absl::StrAppend(&looked_for, looked_for.empty() ? "\"" : ", \"", key, "\"");
  };
  for (const std::string& key : ends) {
    add(key);
    for (const std::string& part : PartsOf(key)) add(part);
  }
  for (const std::string& key : trajectories) add(key);
  return absl::StrCat(
      "rows: got none of ", looked_for,
      ", want one that tells trajectories apart; write one, or name yours in "
      "the storage's EventKeys; EventKeys{.ends = {}, .trajectories = {}} says "
      "that each lane is one endless trajectory");
}

}  // namespace rill
