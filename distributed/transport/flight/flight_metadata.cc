// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_metadata.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/utf8.h"

namespace rill::flight_internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 16;  // Of parts in one another, as SavedState has it.
constexpr int kMaxKeys = 4096;

// --- Values to JSON --------------------------------------------------------

// JSON has no number for these.
Json NumberJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

absl::StatusOr<Json> StateJson(const SavedState& state);

absl::StatusOr<Json> ValueJson(const SavedState::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (formats_internal::IsUtf8(*text)) return Json(*text);
    return Json{{"base64", absl::Base64Escape(*text)}};
  }
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::isfinite(*number)) return Json(*number);
    return Json{{"double", NumberJson(*number)}};
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    Json list = Json::array();
    for (const double number : *numbers) list.push_back(NumberJson(number));
    if (!list.empty()) return list;
    return Json{{"doubles", std::move(list)}};
  }
  if (const auto* parts = std::get_if<std::vector<SavedState>>(&value)) {
    Json list = Json::array();
    for (const SavedState& part : *parts) {
      RILL_ASSIGN_OR_RETURN(Json json, StateJson(part));
      list.push_back(std::move(json));
    }
    if (!list.empty()) return list;
    return Json{{"parts", std::move(list)}};
  }
  if (const auto* number = std::get_if<int64_t>(&value)) return Json(*number);
  return Json(std::get<std::vector<int64_t>>(value));
}

absl::StatusOr<Json> StateJson(const SavedState& state) {
  Json json = Json::object();
  // No value has an empty name.
  if (!state.type().empty() || state.version() != 0) {
    json[""] = Json::array({state.type(), state.version()});
  }
  for (const SavedState::Field& field : state.fields()) {
    RILL_ASSIGN_OR_RETURN(json[field.name], ValueJson(field.value));
  }
  return json;
}

// --- Values from JSON ------------------------------------------------------

absl::Status WrongValue(absl::string_view name, const Json& json) {
  return InvalidArgument(
      "value \"", name, "\": got ",
      json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
      ", want a number, a text, a list of numbers or of objects, or a form of "
      "docs/formats/arrow.md");
}

bool IsInt64(const Json& json) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() ||
          json.get<uint64_t>() <= uint64_t{INT64_MAX});
}

// Nothing where it is no number.
std::optional<double> DoubleOf(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

absl::StatusOr<SavedState> StateOf(const Json& json, int depth);

absl::StatusOr<SavedState::Value> ListOf(absl::string_view name,
                                         const Json& json, int depth) {
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  std::vector<SavedState> parts;
  for (const Json& item : json) {
    if (item.is_object()) {
      RILL_ASSIGN_OR_RETURN(SavedState part, StateOf(item, depth + 1));
      parts.push_back(std::move(part));
      continue;
    }
    const std::optional<double> number = DoubleOf(item);
    if (!number.has_value()) return WrongValue(name, json);
    doubles.push_back(*number);
    if (IsInt64(item)) ints.push_back(item.get<int64_t>());
  }
  if (ints.size() == json.size()) return ints;
  if (doubles.size() == json.size()) return doubles;
  if (parts.size() == json.size()) return parts;
  return WrongValue(name, json);
}

// {"base64": ...} and the other forms that JSON has no values for.
absl::StatusOr<SavedState::Value> FormOf(absl::string_view name,
                                         const Json& json) {
  if (json.size() == 1) {
    const std::string form = json.begin().key();
    const Json& value = json.begin().value();
    if (form == "base64" && value.is_string()) {
      std::string bytes;
      if (absl::Base64Unescape(value.get_ref<const std::string&>(), &bytes)) {
        return bytes;
      }
    }
    if (const auto number = DoubleOf(value); form == "double" && number) {
      return *number;
    }
    if (value.is_array() && value.empty()) {
      if (form == "doubles") return std::vector<double>();
      if (form == "parts") return std::vector<SavedState>();
    }
  }
  return WrongValue(name, json);
}

absl::StatusOr<SavedState::Value> ValueOf(absl::string_view name,
                                          const Json& json, int depth) {
  if (json.is_string()) return json.get<std::string>();
  if (IsInt64(json)) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_array()) return ListOf(name, json, depth);
  if (json.is_object()) return FormOf(name, json);
  return WrongValue(name, json);
}

absl::StatusOr<SavedState> StateOf(const Json& json, int depth) {
  if (!json.is_object() || depth > kMaxDepth) {
    return InvalidArgument("values: want an object, and at most ", kMaxDepth,
                           " in one another");
  }
  SavedState state;
  for (const auto& [name, value] : json.items()) {
    if (!name.empty()) continue;
    if (!value.is_array() || value.size() != 2 || !value[0].is_string() ||
        !IsInt64(value[1])) {
      return WrongValue(name, value);
    }
    state = SavedState(value[0].get<std::string>(), value[1].get<int64_t>());
  }
  for (const auto& [name, value] : json.items()) {
    if (name.empty()) continue;
    RILL_ASSIGN_OR_RETURN(SavedState::Value read, ValueOf(name, value, depth));
    state.Set(name, std::move(read));
  }
  return state;
}

// --- The whole -------------------------------------------------------------

absl::Status ReadError(const Json& json, absl::Status* error) {
  if (json.is_object() && json.contains("code") && json.contains("message") &&
      json["message"].is_string()) {
    for (int code = 1; code <= 16; ++code) {
      const auto status_code = static_cast<absl::StatusCode>(code);
      if (json["code"] != absl::StatusCodeToString(status_code)) continue;
      *error = absl::Status(status_code, json["message"].get<std::string>());
      return absl::OkStatus();
    }
  }
  return InvalidArgument(
      "error: want a code of absl::StatusCode by name and a message");
}

// Leaves `duration` alone where there is none.
template <typename Duration>
absl::Status ReadSeconds(const Json& json, const char* name,
                         Duration* duration) {
  if (!json.contains(name)) return absl::OkStatus();
  if (!json[name].is_number()) {
    return InvalidArgument(name, ": want a number of seconds");
  }
  *duration = absl::Seconds(json[name].get<double>());
  return absl::OkStatus();
}

// A list of at most kMaxRank items; false for others.
template <typename T, typename Is>
bool ReadList(const Json& json, Is is, std::vector<T>* list) {
  if (!json.is_array() || json.size() > Shape::kMaxRank) return false;
  for (const Json& item : json) {
    if (!is(item)) return false;
    list->push_back(item.get<T>());
  }
  return true;
}

absl::StatusOr<Json> Parse(absl::string_view text) {
  // An object looks each key up one by one, and copies recurse.
  std::vector<int> keys(2 * kMaxDepth + 8, 0);  // Of the open objects.
  bool is_bounded = true;
  const auto check = [&](int depth, Json::parse_event_t event, Json&) {
    const auto at = static_cast<size_t>(depth);
    is_bounded = is_bounded && at + 1 < keys.size();
    if (!is_bounded) return false;
    if (event == Json::parse_event_t::object_start) keys[at + 1] = 0;
    if (event == Json::parse_event_t::key) is_bounded = ++keys[at] <= kMaxKeys;
    return is_bounded;
  };
  Json json = Json::parse(text, check, /*allow_exceptions=*/false);
  if (!is_bounded || !json.is_object()) {
    return InvalidArgument("metadata: got ", text.size(),
                           " bytes that are no object in JSON, or one too "
                           "deep or with too many names");
  }
  return json;
}

}  // namespace

absl::StatusOr<std::string> EncodeMetadata(const FlightMetadata& metadata) {
  Json json = Json::object();
  if (!metadata.error.ok()) {
    json["error"] = {{"code", absl::StatusCodeToString(metadata.error.code())},
                     {"message", std::string(metadata.error.message())}};
    return json.dump(-1, ' ', /*ensure_ascii=*/false,
                     Json::error_handler_t::replace);
  }
  RILL_ASSIGN_OR_RETURN(json["values"], StateJson(metadata.values));
  if (metadata.timeout < absl::InfiniteDuration()) {
    json["timeout_s"] = absl::ToDoubleSeconds(metadata.timeout);
  }
  if (metadata.sent.has_value()) {
    json["sent_s"] = absl::ToDoubleSeconds(*metadata.sent);
  }
  if (metadata.batch_shape.has_value()) {
    const auto sizes = metadata.batch_shape->sizes();
    json["batch_shape"] = std::vector<int64_t>(sizes.begin(), sizes.end());
  }
  if (!metadata.dim_names.empty()) json["dim_names"] = metadata.dim_names;
  try {
    return json.dump();
  } catch (const Json::exception& e) {
    return InvalidArgument("metadata: a name is no UTF-8: ", e.what());
  }
}

absl::StatusOr<FlightMetadata> DecodeMetadata(absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, Parse(text));
  FlightMetadata metadata;
  if (json.contains("error")) {
    RILL_RETURN_IF_ERROR(ReadError(json["error"], &metadata.error));
    return metadata;
  }
  if (json.contains("values")) {
    RILL_ASSIGN_OR_RETURN(metadata.values, StateOf(json["values"], 0));
  }
  RILL_RETURN_IF_ERROR(ReadSeconds(json, "timeout_s", &metadata.timeout));
  RILL_RETURN_IF_ERROR(ReadSeconds(json, "sent_s", &metadata.sent));
  if (json.contains("batch_shape")) {
    std::vector<int64_t> sizes;
    if (!ReadList(json["batch_shape"], IsInt64, &sizes)) {
      return InvalidArgument("batch_shape: want a list of sizes");
    }
    RILL_ASSIGN_OR_RETURN(metadata.batch_shape, Shape::Create(sizes));
  }
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (json.contains("dim_names") &&
      !ReadList(json["dim_names"], is_text, &metadata.dim_names)) {
    return InvalidArgument("dim_names: want a list of texts");
  }
  return metadata;
}

}  // namespace rill::flight_internal
