// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANES_LANE_ERRORS_H_
#define RILL_ENVS_LANES_LANE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::envs_internal {

// Whether a status promises that nothing has happened: INVALID_ARGUMENT,
// FAILED_PRECONDITION.
bool IsRefusal(const absl::Status& status);

// The code of an error of a simulator; INTERNAL in place of a refusal's, since
// other lanes may have moved.
absl::StatusCode CodeOfFailure(const absl::Status& status);

// A failure of simulators with this text: code (CodeOfFailure) and payloads are
// those of `first`.
absl::Status FailureLike(const absl::Status& first, absl::string_view text);

// The errors of all lanes in one call as one, "caller: lane 1: why; lane 4:
// why", and each of `lanes` is OK again. FailureLike the first. OK where no
// lane has an error.
absl::Status TakeLaneErrors(absl::string_view caller,
                            absl::Span<absl::Status> lanes);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_LANES_LANE_ERRORS_H_
