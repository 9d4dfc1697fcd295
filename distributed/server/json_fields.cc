// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/server/json_fields.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"

namespace rill {

using formats_internal::ShownJson;

absl::StatusOr<JsonFields> JsonFields::Parse(absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(nlohmann::ordered_json json,
                        formats_internal::ParseBoundedJson("config", text));
  if (!json.is_object()) {
    return InvalidArgument("config: got ", ShownJson(json),
                           ", want an object {...}");
  }
  return JsonFields("", std::move(json));
}

const nlohmann::ordered_json* JsonFields::Ask(absl::string_view name) {
  asked_.insert(std::string(name));
  const auto found = json_.find(std::string(name));
  return found == json_.end() ? nullptr : &*found;
}

absl::Status JsonFields::Missing(absl::string_view name) const {
  return InvalidArgument("config: ", path_, name, ": is missing");
}

absl::Status JsonFields::Wrong(absl::string_view name, absl::string_view got,
                               absl::string_view want) const {
  return InvalidArgument("config: ", path_, name, ": got ", got, ", want ",
                         want);
}

absl::StatusOr<int64_t> JsonFields::Int(absl::string_view name,
                                        std::optional<int64_t> otherwise) {
  const nlohmann::ordered_json* const value = Ask(name);
  if (value == nullptr) {
    return otherwise.has_value() ? absl::StatusOr<int64_t>(*otherwise)
                                 : Missing(name);
  }
  const bool is_large = value->is_number_unsigned() &&
                        value->get<uint64_t>() > uint64_t{INT64_MAX};
  if (!value->is_number_integer() || is_large) {
    return Wrong(name, ShownJson(*value), "a whole number of 64 bits");
  }
  return value->get<int64_t>();
}

absl::StatusOr<double> JsonFields::Double(absl::string_view name,
                                          std::optional<double> otherwise) {
  const nlohmann::ordered_json* const value = Ask(name);
  if (value == nullptr) {
    return otherwise.has_value() ? absl::StatusOr<double>(*otherwise)
                                 : Missing(name);
  }
  if (!value->is_number()) {
    return Wrong(name, ShownJson(*value), "a number");
  }
  return value->get<double>();
}

absl::StatusOr<bool> JsonFields::Bool(absl::string_view name, bool otherwise) {
  const nlohmann::ordered_json* const value = Ask(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    return Wrong(name, ShownJson(*value), "true or false");
  }
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonFields::Text(
    absl::string_view name, const std::optional<std::string>& otherwise) {
  const nlohmann::ordered_json* const value = Ask(name);
  if (value == nullptr) {
    return otherwise.has_value() ? absl::StatusOr<std::string>(*otherwise)
                                 : Missing(name);
  }
  if (!value->is_string()) return Wrong(name, ShownJson(*value), "a text");
  return value->get<std::string>();
}

absl::StatusOr<std::optional<JsonFields>> JsonFields::Object(
    absl::string_view name) {
  const nlohmann::ordered_json* const value = Ask(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    return Wrong(name, ShownJson(*value), "an object {...}");
  }
  return JsonFields(absl::StrCat(path_, name, "."), *value);
}

std::vector<std::string> JsonFields::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : json_.items()) names.push_back(name);
  return names;
}

absl::Status JsonFields::CheckNothingElse() const {
  for (const auto& [name, value] : json_.items()) {
    if (!asked_.contains(name)) {
      return InvalidArgument("config: ", path_, name,
                             ": is unknown, want one of ",
                             absl::StrJoin(asked_, ", "));
    }
  }
  return absl::OkStatus();
}

}  // namespace rill
