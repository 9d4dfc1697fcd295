// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_METADATA_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_METADATA_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/state/saved_state.h"
#include "rill/tensors/shape.h"

namespace rill::flight_internal {

// All of a message but its columns: docs/formats/arrow.md.
struct FlightMetadata {
  // A reply alone has one; the rest is empty then.
  absl::Status error = absl::OkStatus();
  SavedState values = {};
  absl::Duration timeout = absl::InfiniteDuration();  // Of a request.
  // When it was sent, by a clock of the client's.
  std::optional<absl::Duration> sent = std::nullopt;
  std::optional<Shape> batch_shape = std::nullopt;
  std::vector<std::string> dim_names = {};
};

// JSON without a line feed. INVALID_ARGUMENT for a name that is no UTF-8.
absl::StatusOr<std::string> EncodeMetadata(const FlightMetadata& metadata);

// Takes anything; INVALID_ARGUMENT.
absl::StatusOr<FlightMetadata> DecodeMetadata(absl::string_view text);

}  // namespace rill::flight_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_METADATA_H_
