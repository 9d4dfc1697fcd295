// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/lane_errors.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rill::envs_internal {

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

absl::StatusCode CodeOfFailure(const absl::Status& status) {
  return IsRefusal(status) ? absl::StatusCode::kInternal : status.code();
}

absl::Status TakeLaneErrors(absl::string_view caller,
                            absl::Span<absl::Status> lanes) {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].ok()) continue;
    // Taken out: the next call of the environment begins without errors.
    const absl::Status error = std::exchange(lanes[lane], absl::OkStatus());
    if (code == absl::StatusCode::kOk) code = CodeOfFailure(error);
    absl::StrAppend(&text, text.empty() ? "" : "; ", "lane ", lane, ": ",
                    error.message());
  }
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  return absl::Status(code, absl::StrCat(caller, ": ", text));
}

}  // namespace rill::envs_internal
