// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/message_header.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/value_limits.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/json/utf8.h"

namespace rill {
namespace {

using formats_internal::ParseBoundedJson;
using formats_internal::ParseJsonShape;
using formats_internal::ShownJson;
using Json = nlohmann::ordered_json;

// The times of a request add so much at most: names, and bytes.
constexpr int64_t kTimes = 2;
constexpr size_t kTimesBytes = 100;
// The longest text of an error.
constexpr size_t kMaxErrorBytes = 64 << 10;

// --- Values to JSON --------------------------------------------------------

// JSON has no number for these.
Json NumberJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

Json StateJson(const SavedState& state);

Json ValueJson(const SavedState::Value& value) {
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
    for (const SavedState& part : *parts) list.push_back(StateJson(part));
    if (!list.empty()) return list;
    return Json{{"parts", std::move(list)}};
  }
  if (const auto* number = std::get_if<int64_t>(&value)) return Json(*number);
  return Json(std::get<std::vector<int64_t>>(value));
}

Json StateJson(const SavedState& state) {
  Json json = Json::object();
  // No value has an empty name.
  if (!state.type().empty() || state.version() != 0) {
    json[""] = Json::array({state.type(), state.version()});
  }
  for (const SavedState::Field& field : state.fields()) {
    json[field.name] = ValueJson(field.value);
  }
  return json;
}

// Objects, and their names.
int64_t CountNames(const Json& json) {
  int64_t names = json.is_object() ? static_cast<int64_t>(json.size()) + 1 : 0;
  for (const Json& item : json) {
    if (item.is_structured()) names += CountNames(item);
  }
  return names;
}

// --- Values from JSON ------------------------------------------------------

absl::Status WrongValue(absl::string_view name, const Json& json) {
  return InvalidArgument(
      "value ", ShownJson(std::string(name)), ": got ", ShownJson(json),
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

// `depth`: of the states that this is in, and this.
absl::StatusOr<SavedState> StateOf(const Json& json, int64_t depth);

absl::StatusOr<SavedState::Value> ListOf(absl::string_view name,
                                         const Json& json, int64_t depth) {
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
                                          const Json& json, int64_t depth) {
  if (json.is_string()) return json.get<std::string>();
  if (IsInt64(json)) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_array()) return ListOf(name, json, depth);
  if (json.is_object()) return FormOf(name, json);
  return WrongValue(name, json);
}

absl::StatusOr<SavedState> StateOf(const Json& json, int64_t depth) {
  if (!json.is_object() || depth > kMaxValueDepth) {
    return InvalidArgument("values: want an object, and at most ",
                           kMaxValueDepth, " in one another");
  }
  const auto count = static_cast<int64_t>(json.size() - json.count(""));
  if (count > kMaxValues) {
    return InvalidArgument("values: got ", count,
                           " in one object, want at most ", kMaxValues);
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

// A number, however far away.
double SecondsOf(absl::Duration duration) {
  return std::clamp(absl::ToDoubleSeconds(duration),
                    std::numeric_limits<double>::lowest(),
                    std::numeric_limits<double>::max());
}

// Behind what an object of some names has.
void AddSeconds(absl::string_view name, absl::Duration duration,
                std::string* text) {
  text->pop_back();
  absl::StrAppend(text, ",\"", name, "\":", Json(SecondsOf(duration)).dump(),
                  "}");
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

// A name a dimension.
absl::Status ReadNames(const Json& json, std::vector<std::string>* names) {
  bool is_list = json.is_array() && json.size() <= Shape::kMaxRank;
  for (size_t i = 0; is_list && i < json.size(); ++i) {
    is_list = json[i].is_string();
    if (is_list) names->push_back(json[i].get<std::string>());
  }
  if (is_list) return absl::OkStatus();
  return InvalidArgument("message header: dim_names: got ", ShownJson(json),
                         ", want a list of texts");
}

absl::Status CheckBytes(size_t bytes) {
  if (bytes <= kMaxHeaderBytes) return absl::OkStatus();
  return InvalidArgument("message header: got ", bytes, " bytes, want at most ",
                         kMaxHeaderBytes);
}

// Text that is no JSON, or of another form, is the sender's fault all the same.
template <typename T>
absl::StatusOr<T> OfSender(absl::StatusOr<T> read) {
  if (read.ok()) return read;
  return absl::InvalidArgumentError(read.status().message());
}

}  // namespace

absl::StatusOr<std::string> EncodeMessageHeader(const MessageHeader& header) {
  Json json = Json::object();
  if (!header.error.ok()) {
    json["error"] = {{"code", absl::StatusCodeToString(header.error.code())},
                     {"message", std::string(header.error.message().substr(
                                     0, kMaxErrorBytes))}};
    return formats_internal::JsonText(json);
  }
  RILL_RETURN_IF_ERROR(CheckValues(header.values));
  json["values"] = StateJson(header.values);
  if (header.batch_shape.has_value()) {
    const auto sizes = header.batch_shape->sizes();
    json["batch_shape"] = std::vector<int64_t>(sizes.begin(), sizes.end());
  }
  if (!header.dim_names.empty()) json["dim_names"] = header.dim_names;
  const int64_t names = CountNames(json) + kTimes;
  if (names > kMaxHeaderNames) {
    return InvalidArgument("message header: got ", names,
                           " objects and names, want at most ",
                           kMaxHeaderNames);
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception& e) {
    return InvalidArgument("message header: a name is no UTF-8: ", e.what());
  }
  RILL_RETURN_IF_ERROR(CheckBytes(text.size() + kTimesBytes));
  if (header.timeout < absl::InfiniteDuration()) {
    AddSeconds("timeout_s", header.timeout, &text);
  }
  if (header.sent.has_value()) AddSeconds("sent_s", *header.sent, &text);
  return text;
}

void AddHeaderTimes(absl::Duration timeout, absl::Duration sent,
                    std::string* text) {
  if (timeout < absl::InfiniteDuration()) {
    AddSeconds("timeout_s", timeout, text);
  }
  AddSeconds("sent_s", sent, text);
}

absl::StatusOr<MessageHeader> DecodeMessageHeader(absl::string_view text) {
  RILL_RETURN_IF_ERROR(CheckBytes(text.size()));
  RILL_ASSIGN_OR_RETURN(
      const Json json,
      OfSender(ParseBoundedJson("message header", text, kMaxHeaderNames)));
  if (!json.is_object()) {
    return InvalidArgument("message header: got ", ShownJson(json),
                           ", want an object");
  }
  MessageHeader header;
  if (json.contains("error")) {
    RILL_RETURN_IF_ERROR(ReadError(json["error"], &header.error));
    return header;
  }
  if (json.contains("values")) {
    RILL_ASSIGN_OR_RETURN(header.values, StateOf(json["values"], 1));
  }
  RILL_RETURN_IF_ERROR(ReadSeconds(json, "timeout_s", &header.timeout));
  RILL_RETURN_IF_ERROR(ReadSeconds(json, "sent_s", &header.sent));
  if (json.contains("batch_shape")) {
    RILL_ASSIGN_OR_RETURN(
        header.batch_shape,
        OfSender(ParseJsonShape("message header", "batch_shape",
                                json["batch_shape"])));
  }
  if (json.contains("dim_names")) {
    RILL_RETURN_IF_ERROR(ReadNames(json["dim_names"], &header.dim_names));
  }
  return header;
}

}  // namespace rill
