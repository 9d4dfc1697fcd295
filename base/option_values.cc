// SPDX-License-Identifier: Apache-2.0
#include "rill/base/option_values.h"

#include <charconv>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rill {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

}  // namespace

OptionValues& OptionValues::Add(absl::string_view name, std::string text,
                                bool is_kind) {
  values_.push_back({std::string(name), std::move(text), is_kind});
  return *this;
}

OptionValues& OptionValues::Bool(absl::string_view name, bool value) {
  return Add(name, value ? "true" : "false");
}

OptionValues& OptionValues::Int(absl::string_view name, int64_t value) {
  return Add(name, absl::StrCat(value));
}

OptionValues& OptionValues::Unsigned(absl::string_view name, uint64_t value) {
  return Add(name, absl::StrCat(value));
}

OptionValues& OptionValues::Double(absl::string_view name, double value) {
  char text[32];  // The longest has 24 characters.
  // The shortest text that reads back as the value, in every locale; printf
  // gives neither.
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof(text), value);
  return Add(name, std::string(text, end.ptr));
}

OptionValues& OptionValues::Text(absl::string_view name,
                                 absl::string_view value) {
  return Add(name, Quoted(value));
}

OptionValues& OptionValues::Texts(absl::string_view name,
                                  absl::Span<const std::string> values) {
  const auto append = [](std::string* out, const std::string& value) {
    out->append(Quoted(value));
  };
  return Add(name, absl::StrCat("[", absl::StrJoin(values, ", ", append), "]"));
}

OptionValues& OptionValues::Choice(absl::string_view name,
                                   absl::string_view word) {
  return Add(name, std::string(word));
}

OptionValues& OptionValues::Function(absl::string_view name, bool is_given) {
  return Choice(name, is_given ? "function" : "none");
}

OptionValues& OptionValues::Part(absl::string_view name, absl::string_view kind,
                                 const OptionValues& options) {
  Add(name, std::string(kind), /*is_kind=*/true);
  for (const Value& value : options.values_) {
    Add(absl::StrCat(name, ".", value.name), value.text, value.is_kind);
  }
  return *this;
}

}  // namespace rill
