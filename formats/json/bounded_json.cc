// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/bounded_json.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/json_text.h"

namespace rill::formats_internal {

using Json = nlohmann::ordered_json;

namespace {

// Counts before anything is built. The library's parser with a callback would
// do, but it looks through a list again for each object in it.
class NameCounter final : public nlohmann::json_sax<Json> {
 public:
  explicit NameCounter(int64_t max_names) : max_names_(max_names) {}

  bool has_wide_object() const { return has_wide_object_; }
  bool has_too_many() const { return names_ > max_names_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(size_t) override {
    keys_.push_back(0);
    return Count();
  }
  bool key(std::string&) override {
    has_wide_object_ = ++keys_.back() > kMaxJsonKeys;
    return !has_wide_object_ && Count();
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Count() {
    ++names_;
    return !has_too_many();
  }

  const int64_t max_names_;
  std::vector<int64_t> keys_;  // Of the open objects.
  int64_t names_ = 0;
  bool has_wide_object_ = false;
};

}  // namespace

// Objects keep their order, and for that look a key up one by one: no object
// may have very many, or n keys would cost n^2. Depth is bounded as the
// library's copies and its writer recurse.
absl::StatusOr<Json> ParseBoundedJson(absl::string_view where,
                                      absl::string_view text,
                                      int64_t max_names) {
  if (const int depth = JsonDepth(text); depth > kMaxJsonDepth) {
    return InvalidArgument(where, ": brackets: got a depth of ", depth,
                           ", want at most ", kMaxJsonDepth);
  }
  // A key and its value are four bytes at least, `"":1`, and an object is two.
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes / 4 > kMaxJsonKeys || bytes / 2 > max_names) {
    NameCounter names(max_names);
    const bool is_json = Json::sax_parse(text, &names);
    if (names.has_wide_object()) {
      return InvalidArgument(where, ": keys of one object: want at most ",
                             kMaxJsonKeys);
    }
    if (names.has_too_many()) {
      return InvalidArgument(where, ": objects and their keys: want at most ",
                             max_names);
    }
    if (!is_json) return DataLoss(where, ": got no JSON");
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
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
