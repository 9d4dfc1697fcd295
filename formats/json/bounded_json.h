// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_JSON_BOUNDED_JSON_H_
#define RILL_FORMATS_JSON_BOUNDED_JSON_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "rill/tensors/shape.h"

namespace rill::formats_internal {

// JSON of which nothing is known: what may cost the stack or minutes is refused
// before it does. Objects keep their order; a key that comes twice has its last
// value. For .cc files, as the library's header is large.
// Thread-safety: thread-safe.

// Keys of one object: entries and the few names that formats add.
inline constexpr int64_t kMaxJsonKeys = 4096 + 8;

// DATA_LOSS where `text` is no JSON; INVALID_ARGUMENT where brackets are deeper
// than kMaxJsonDepth, or an object has more than kMaxJsonKeys keys. The same
// where objects and keys are more than `max_names` in all. `where` starts the
// message.
// Cost: O(text), and a comparison for each pair of keys of an object.
absl::StatusOr<nlohmann::ordered_json> ParseBoundedJson(
    absl::string_view where, absl::string_view text,
    int64_t max_names = std::numeric_limits<int64_t>::max());

// Compact, UTF-8 as it is.
std::string JsonText(const nlohmann::ordered_json& json);
// For messages: of bounded length and without control characters.
std::string ShownJson(const nlohmann::ordered_json& json);

// A list of sizes. DATA_LOSS where it is none; INVALID_ARGUMENT where there is
// no such Shape. `what` names it.
absl::StatusOr<Shape> ParseJsonShape(absl::string_view where,
                                     absl::string_view what,
                                     const nlohmann::ordered_json& json);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_JSON_BOUNDED_JSON_H_
