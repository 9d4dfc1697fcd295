// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/group_ends.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"

namespace rill::transforms_internal {
namespace {

constexpr absl::string_view kNext = "next/";

}  // namespace

std::vector<std::string> EndsOf(absl::string_view done_key,
                                const TensorDictSpec& rows) {
  const EndKeys keys = EndsOf(done_key, [&](absl::string_view key) {
    return rows.Find(key) != nullptr;
  });
  return {keys.begin(), keys.end()};
}

EndKeys EndsOf(absl::string_view done_key,
               absl::FunctionRef<bool(absl::string_view)> has) {
  if (has(done_key)) return {std::string(done_key)};
  absl::string_view group = done_key;
  if (!absl::ConsumeSuffix(&group, "done") ||
      !(group.empty() || absl::EndsWith(group, "/"))) {
    return {};
  }
  EndKeys parts;
  for (const absl::string_view part : {"terminated", "truncated"}) {
    std::string key = absl::StrCat(group, part);
    if (has(key)) parts.push_back(std::move(key));
  }
  return parts;
}

std::vector<std::string> GroupEndsOf(absl::string_view key,
                                     const TensorDictSpec& rows) {
  absl::ConsumePrefix(&key, kNext);
  for (size_t slash = key.rfind('/'); slash != absl::string_view::npos;
       slash = key.rfind('/')) {
    key = key.substr(0, slash);
    std::vector<std::string> ends =
        EndsOf(absl::StrCat(kNext, key, "/done"), rows);
    if (!ends.empty()) return ends;
  }
  return {};
}

absl::Status CheckStopsAtGroupEnds(absl::string_view caller,
                                   absl::string_view key,
                                   absl::string_view done_key,
                                   const TensorDictSpec& rows) {
  const std::vector<std::string> ends = GroupEndsOf(key, rows);
  if (ends.empty() || ends == EndsOf(done_key, rows)) return absl::OkStatus();
  return InvalidArgument(caller, ": \"", key, "\": got done_key \"", done_key,
                         "\", want the ends of its group, \"", ends[0],
                         "\"; name that, or give the group a chain of its own");
}

absl::Status CheckStopsAtGroupEnds(absl::string_view caller,
                                   absl::string_view key,
                                   absl::string_view done_key,
                                   const TensorDict& batch) {
  absl::string_view root = key;
  absl::ConsumePrefix(&root, kNext);
  if (!absl::StrContains(root, '/')) return absl::OkStatus();
  return CheckStopsAtGroupEnds(caller, key, done_key,
                               TensorDictSpec::Of(batch));
}

}  // namespace rill::transforms_internal
