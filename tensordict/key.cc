// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/key.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// Position of the first "/" that is not escaped, or npos. Keys mostly have no
// escape: the first "/" is then found by one search, and the walk from the
// front is for the others. A "\" before the "/" need not be an escape of it: in
// "a\\/b" it is itself escaped.
size_t FindSeparator(absl::string_view key) {
  size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return slash;
  if (slash == 0 || key[slash - 1] != '\\') return slash;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '\\') {
      ++i;  // Whatever follows is taken literally.
    } else if (key[i] == '/') {
      return i;
    }
  }
  return absl::string_view::npos;
}

}  // namespace

std::string EscapeKeyComponent(absl::string_view component) {
  std::string text;
  text.reserve(component.size());
  for (const char c : component) {
    if (c == '/' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  return text;
}

std::string JoinKey(absl::Span<const absl::string_view> components) {
  std::string text;
  for (size_t i = 0; i < components.size(); ++i) {
    if (i > 0) text.push_back('/');
    text += EscapeKeyComponent(components[i]);
  }
  return text;
}

// Views into `key`, so that a look-up allocates nothing. `head` keeps its
// escapes: entries are stored under escaped names.
void SplitKeyHead(absl::string_view key, absl::string_view* head,
                  absl::string_view* rest) {
  const size_t slash = FindSeparator(key);
  if (slash == absl::string_view::npos) {
    *head = key;
    *rest = absl::string_view();
    return;
  }
  *head = key.substr(0, slash);
  *rest = key.substr(slash + 1);
}

absl::Status CheckKey(absl::string_view key) {
  if (key.empty()) {
    return InvalidArgument(
        "Key: got an empty text, want components joined by \"/\"");
  }
  // One pass checks both rules: no empty component, and each "\" before "/" or
  // "\".
  bool component_is_empty = true;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '/') {
      if (component_is_empty) break;
      component_is_empty = true;
      continue;
    }
    component_is_empty = false;
    if (key[i] != '\\') continue;
    ++i;
    if (i == key.size() || (key[i] != '/' && key[i] != '\\')) {
      return InvalidArgument(
          "Key: broken escape in \"", key, "\": got \"\\",
          i == key.size() ? absl::string_view() : key.substr(i, 1),
          "\", want \"\\/\" or \"\\\\\"; write a literal \"\\\" as \"\\\\\"");
    }
  }
  if (component_is_empty) {
    return InvalidArgument("Key: empty component in \"", key,
                           "\"; write a literal \"/\" as \"\\/\"");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SplitKey(absl::string_view key) {
  if (absl::Status status = CheckKey(key); !status.ok()) return status;
  std::vector<std::string> components(1);
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '/') {
      components.emplace_back();
      continue;
    }
    if (key[i] == '\\') ++i;
    components.back().push_back(key[i]);
  }
  return components;
}

std::string ListKeys(absl::Span<const std::string> keys) {
  constexpr size_t kMaxKeys = 40;
  if (keys.empty()) return "none";
  return absl::StrCat(
      "\"", absl::StrJoin(keys.subspan(0, kMaxKeys), "\", \""), "\"",
      keys.size() > kMaxKeys ? absl::StrCat(", ... (", keys.size(), " in all)")
                             : "");
}

}  // namespace rill
