// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FINAL_ERROR_H_
#define RILL_DISTRIBUTED_TRANSPORT_FINAL_ERROR_H_

#include "absl/status/status.h"

namespace rill {

// Whether a request that failed so would fail each time, so that a client gives
// it up. Others are of the moment, as UNAVAILABLE, DEADLINE_EXCEEDED and
// RESOURCE_EXHAUSTED are, and it tries again.
inline bool IsFinalError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_FINAL_ERROR_H_
