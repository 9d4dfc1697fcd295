// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/bounded_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/json_text.h"

namespace rill::formats_internal {

using Json = nlohmann::ordered_json;

// Objects keep their order, and for that look a key up one by one: no object
// may have very many, or n keys would cost n^2. Depth is bounded as the
// library's copies and its writer recurse.
absl::StatusOr<Json> ParseBoundedJson(absl::string_view where,
                                      absl::string_view text,
                                      int64_t max_keys) {
  if (const int depth = JsonDepth(text); depth > kMaxJsonDepth) {
    return InvalidArgument(where, ": brackets: got a depth of ", depth,
                           ", want at most ", kMaxJsonDepth);
  }
  // The library gives an object's start the depth of what is around it, and its
  // keys one more.
  std::vector<int64_t> keys(kMaxJsonDepth + 2, 0);  // Of the open objects.
  int64_t all_keys = 0;
  bool has_too_many = false;
  const auto count = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start) keys[depth + 1] = 0;
    if (event != Json::parse_event_t::key) return true;
    if (++keys[depth] <= kMaxJsonKeys && ++all_keys <= max_keys) return true;
    has_too_many = true;
    return false;
  };
  // A key and its value are four bytes at least: `"":1`. Without the callback
  // it takes half the time.
  const bool is_short =
      static_cast<int64_t>(text.size()) / 4 <= std::min(kMaxJsonKeys, max_keys);
  Json json = is_short ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                       : Json::parse(text, count, /*allow_exceptions=*/false);
  if (has_too_many) {
    return all_keys > max_keys
               ? InvalidArgument(where, ": keys: want at most ", max_keys)
               : InvalidArgument(where, ": keys of one object: want at most ",
                                 kMaxJsonKeys);
  }
  if (json.is_discarded()) {
    return DataLoss(where, ": got no JSON");
  }
  return json;
}

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string ShownJson(const Json& json) {
  std::string text =
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > 80) text = absl::StrCat(text.substr(0, 77), "...");
  return text;
}

absl::StatusOr<Shape> ParseJsonShape(absl::string_view where,
                                     absl::string_view what, const Json& json) {
  const auto broken = [&](absl::string_view want) {
    return DataLoss(where, ": ", what, ": got ", ShownJson(json), ", want ",
                    want);
  };
  if (!json.is_array()) return broken("a list of sizes");
  std::vector<int64_t> sizes;
  for (const Json& size : json) {
    if (!size.is_number_integer()) return broken("integers");
    if (size.is_number_unsigned() &&
        size.get<uint64_t>() >
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return InvalidArgument(where, ": ", what, ": got ", ShownJson(json),
                             ", want sizes below 2^63");
    }
    sizes.push_back(size.get<int64_t>());
    if (sizes.size() > Shape::kMaxRank) break;  // Shape::Create says so.
  }
  auto shape = Shape::Create(sizes);
  if (!shape.ok()) {
    return InvalidArgument(where, ": ", what, ": ", shape.status().message());
  }
  return shape;
}

}  // namespace rill::formats_internal
