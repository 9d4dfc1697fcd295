// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MESSAGE_HEADER_H_
#define RILL_DISTRIBUTED_TRANSPORT_MESSAGE_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/state/saved_state.h"
#include "rill/tensors/shape.h"

namespace rill {

// The longest header, and all its objects and their names together: what
// reading one may cost. The limits of values are those of value_limits.h.
inline constexpr int64_t kMaxHeaderBytes = 16 << 20;
inline constexpr int64_t kMaxHeaderNames = 1 << 16;

// All of a message but its columns, as JSON, for engines whose peers may be
// without Rill: docs/formats/arrow.md.
// Thread-safety: thread-compatible; the functions are thread-safe.
// Cost: that of the text.
struct MessageHeader {
  // A reply alone has one; the rest is empty then.
  absl::Status error = absl::OkStatus();
  SavedState values = {};
  absl::Duration timeout = absl::InfiniteDuration();  // Of a request.
  // When it was sent, by a clock of the client's.
  std::optional<absl::Duration> sent = std::nullopt;
  std::optional<Shape> batch_shape = std::nullopt;
  std::vector<std::string> dim_names = {};
};

// JSON without a line feed, which DecodeMessageHeader takes. INVALID_ARGUMENT
// beyond a limit, and for a name that is no UTF-8. An error can always be
// encoded; the end of a long text is lost.
absl::StatusOr<std::string> EncodeMessageHeader(const MessageHeader& header);

// Adds the times of a request to one that was encoded without: they are known
// when it is written.
void AddHeaderTimes(absl::Duration timeout, absl::Duration sent,
                    std::string* text);

// Takes anything; INVALID_ARGUMENT.
absl::StatusOr<MessageHeader> DecodeMessageHeader(absl::string_view text);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_MESSAGE_HEADER_H_
