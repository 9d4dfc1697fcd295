// SPDX-License-Identifier: Apache-2.0
// Texts as keys, and components joined: what is taken apart joins again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/key.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

void TryText(absl::string_view text) {
  const auto components = SplitKey(text);
  RILL_FUZZ_CHECK(components.ok() == CheckKey(text).ok());
  if (!components.ok()) return;
  RILL_FUZZ_CHECK(!components->empty());
  std::vector<absl::string_view> views;
  absl::string_view rest = text;
  for (const std::string& component : *components) {
    RILL_FUZZ_CHECK(!component.empty());
    views.push_back(component);
    absl::string_view head;
    SplitKeyHead(rest, &head, &rest);
    RILL_FUZZ_CHECK(head == EscapeKeyComponent(component));
  }
  RILL_FUZZ_CHECK(rest.empty());
  RILL_FUZZ_CHECK(JoinKey(views) == text);
}

// Any bytes but none at all may be a component.
void TryComponents(absl::string_view bytes) {
  const std::vector<absl::string_view> components =
      absl::StrSplit(bytes, '\n', absl::SkipEmpty());
  if (components.empty()) return;
  const auto split = SplitKey(JoinKey(components));
  RILL_FUZZ_CHECK(split.ok());
  RILL_FUZZ_CHECK(std::vector<absl::string_view>(split->begin(),
                                                 split->end()) == components);
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  rill::TryText(bytes);
  rill::TryComponents(bytes);
  return 0;
}
