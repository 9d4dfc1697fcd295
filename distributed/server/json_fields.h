// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SERVER_JSON_FIELDS_H_
#define RILL_DISTRIBUTED_SERVER_JSON_FIELDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace rill {

// The fields of a JSON object that a person wrote: each is asked for by name,
// and one that nobody asked for is an error. Errors are INVALID_ARGUMENT and
// name the field by its path, as `tables.replay.capacity`.
// Thread-safety: thread-compatible.
class JsonFields {
 public:
  // The whole of a text: an object.
  static absl::StatusOr<JsonFields> Parse(absl::string_view text);

  // The field, or `otherwise` where it is missing; an error where both are.
  absl::StatusOr<int64_t> Int(absl::string_view name,
                              std::optional<int64_t> otherwise = std::nullopt);
  absl::StatusOr<double> Double(absl::string_view name,
                                std::optional<double> otherwise = std::nullopt);
  absl::StatusOr<bool> Bool(absl::string_view name, bool otherwise);
  absl::StatusOr<std::string> Text(
      absl::string_view name,
      const std::optional<std::string>& otherwise = std::nullopt);
  // An object; nothing where it is missing.
  absl::StatusOr<std::optional<JsonFields>> Object(absl::string_view name);

  // Names in order, asked for or not.
  std::vector<std::string> names() const;
  // An error where a field was not asked for: lists those that were.
  absl::Status CheckNothingElse() const;
  // An error of the field.
  absl::Status Wrong(absl::string_view name, absl::string_view got,
                     absl::string_view want) const;

 private:
  JsonFields(std::string path, nlohmann::ordered_json json)
      : path_(std::move(path)), json_(std::move(json)) {}

  // Null where it is missing.
  const nlohmann::ordered_json* Ask(absl::string_view name);
  absl::Status Missing(absl::string_view name) const;

  std::string path_;  // "" or with a dot at its end.
  nlohmann::ordered_json json_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_SERVER_JSON_FIELDS_H_
