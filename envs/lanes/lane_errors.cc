// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/lane_errors.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace rill::envs_internal {

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

absl::StatusCode CodeOfFailure(const absl::Status& status) {
  return IsRefusal(status) ? absl::StatusCode::kInternal : status.code();
}

absl::Status FailureLike(const absl::Status& first, absl::string_view text) {
  absl::Status status(CodeOfFailure(first), text);
  first.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    status.SetPayload(url, payload);
  });
  return status;
}

absl::Status TakeLaneErrors(absl::string_view caller,
                            absl::Span<absl::Status> lanes) {
  absl::Status first;
  std::string text;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].ok()) continue;
    // Taken out: the next call of the environment begins without errors.
    const absl::Status error = std::exchange(lanes[lane], absl::OkStatus());
    first.Update(error);
    absl::StrAppend(&text, text.empty() ? "" : "; ", "lane ", lane, ": ",
                    error.message());
  }
  if (first.ok()) return first;
  return FailureLike(first, absl::StrCat(caller, ": ", text));
}

}  // namespace rill::envs_internal
