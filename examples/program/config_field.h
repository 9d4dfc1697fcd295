// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PROGRAM_CONFIG_FIELD_H_
#define RILL_EXAMPLES_PROGRAM_CONFIG_FIELD_H_

#include <cstdint>
#include <set>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::examples {

// One member of a program's configuration, by its flag. A program lists all of
// them once; flags, help, ranges and saved texts follow from that list.
//
// Thread-safety: thread-compatible; the member must outlive the field.
//
// Example (ConfigFieldTest.Example runs it):
//   int64_t lanes = 16;
//   double gamma = 0.99;
//   const std::vector<ConfigField> fields = {
//       {"lanes", &lanes, "Environments that step together.", 1, 4096},
//       {"gamma", &gamma, "Discount of future rewards.", 0, 1}};
//   RILL_RETURN_IF_ERROR(ReadFlags({"--lanes=8"}, fields).status());
//   RILL_RETURN_IF_ERROR(CheckRanges(fields));
struct ConfigField {
  const char* name;
  std::variant<int64_t*, double*, bool*, std::string*> value;
  const char* help;
  // The range of a number, inclusive.
  double min = 0;
  double max = 0;
};

// The member as a text from which ReadValue gives the same bits.
std::string ValueText(const ConfigField& field);

// False where `text` is no value of the member's type; the member is then
// unspecified.
bool ReadValue(absl::string_view text, const ConfigField& field);

// INVALID_ARGUMENT names the first number outside its range, and the range.
absl::Status CheckRanges(absl::Span<const ConfigField> fields);

// Reads words of the form --name=value into the members, or --name for a bool
// that is to be true. Returns the names that were given. INVALID_ARGUMENT names
// the word that is no flag, or whose value is not of the member's type.
absl::StatusOr<std::set<std::string>> ReadFlags(
    absl::Span<const char* const> words, absl::Span<const ConfigField> fields);

// Every flag with its value, as the default, and its explanation.
std::string FormatHelp(absl::Span<const ConfigField> fields);

}  // namespace rill::examples

#endif  // RILL_EXAMPLES_PROGRAM_CONFIG_FIELD_H_
