// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/config_field.h"

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"

namespace rill::examples {
namespace {

// 15 digits where they are enough, else the 17 that always are.
std::string DoubleText(double value) {
  const std::string text = absl::StrFormat("%.15g", value);
  double back = 0;
  if (absl::SimpleAtod(text, &back) && back == value) return text;
  return absl::StrFormat("%.17g", value);
}

absl::Status CheckRange(const ConfigField& field, double value) {
  // NaN is outside too.
  if (value >= field.min && value <= field.max) return absl::OkStatus();
  return InvalidArgument(
      absl::StrFormat("--%s: got %s, want a value in [%g, %g]", field.name,
                      ValueText(field), field.min, field.max));
}

absl::Status ReadFlag(absl::string_view word,
                      absl::Span<const ConfigField> fields,
                      std::set<std::string>* given) {
  absl::string_view rest = word;
  if (!absl::ConsumePrefix(&rest, "--")) {
    return InvalidArgument("got the word \"", word,
                           "\", want --name=value; --help explains the flags");
  }
  const size_t equals = rest.find('=');
  const absl::string_view name = rest.substr(0, equals);
  for (const ConfigField& field : fields) {
    if (name != field.name) continue;
    const bool is_bool = std::holds_alternative<bool*>(field.value);
    const absl::string_view value = equals != absl::string_view::npos
                                        ? rest.substr(equals + 1)
                                    : is_bool ? "true"
                                              : "";
    // The default, for the error: ReadValue may leave anything.
    const std::string before = ValueText(field);
    if (!ReadValue(value, field)) {
      return InvalidArgument("--", name, ": got \"", value, "\", want a value ",
                             "like ", before);
    }
    given->insert(std::string(name));
    return absl::OkStatus();
  }
  return InvalidArgument("got the flag \"--", name,
                         "\", want one that --help explains");
}

}  // namespace

std::string ValueText(const ConfigField& field) {
  return std::visit(
      [](const auto* value) -> std::string {
        using T = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<T, double>) {
          return DoubleText(*value);
        } else if constexpr (std::is_same_v<T, bool>) {
          return *value ? "true" : "false";
        } else {
          return absl::StrCat(*value);
        }
      },
      field.value);
}

bool ReadValue(absl::string_view text, const ConfigField& field) {
  return std::visit(
      [text](auto* value) {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) {
          return absl::SimpleAtoi(text, value);
        } else if constexpr (std::is_same_v<T, double>) {
          return absl::SimpleAtod(text, value);
        } else if constexpr (std::is_same_v<T, bool>) {
          return absl::SimpleAtob(text, value);
        } else {
          *value = std::string(text);
          return true;
        }
      },
      field.value);
}

absl::Status CheckRanges(absl::Span<const ConfigField> fields) {
  for (const ConfigField& field : fields) {
    if (const auto* number = std::get_if<int64_t*>(&field.value)) {
      RILL_RETURN_IF_ERROR(CheckRange(field, static_cast<double>(**number)));
    } else if (const auto* real = std::get_if<double*>(&field.value)) {
      RILL_RETURN_IF_ERROR(CheckRange(field, **real));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> ReadFlags(
    absl::Span<const char* const> words, absl::Span<const ConfigField> fields) {
  std::set<std::string> given;
  for (absl::string_view word : words) {
    RILL_RETURN_IF_ERROR(ReadFlag(word, fields, &given));
  }
  return given;
}

std::string FormatHelp(absl::Span<const ConfigField> fields) {
  std::string help;
  for (const ConfigField& field : fields) {
    absl::StrAppendFormat(&help, "  --%s=%s\n      %s\n", field.name,
                          ValueText(field), field.help);
  }
  return help;
}

}  // namespace rill::examples
