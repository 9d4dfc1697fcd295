// SPDX-License-Identifier: Apache-2.0
// Components of keys as names of files: none leads out of its folder, and each
// can be told from its name.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The component that a name stands for.
std::string Decode(absl::string_view name) {
  if (name == "%") return "";
  std::string component;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      component += name[i];
      continue;
    }
    RILL_FUZZ_CHECK(i + 2 < name.size());
    const int high = HexDigit(name[i + 1]);
    const int low = HexDigit(name[i + 2]);
    RILL_FUZZ_CHECK(high >= 0 && low >= 0);
    component += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return component;
}

bool StaysInItsFolder(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == absl::string_view::npos &&
         name.find('\0') == absl::string_view::npos;
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::formats_internal;  // NOLINT: the target's only user.
  const absl::string_view component(reinterpret_cast<const char*>(data), size);
  const std::string name = MemmapFileName(component);
  RILL_FUZZ_CHECK(StaysInItsFolder(name));
  RILL_FUZZ_CHECK(Decode(name) == component);
  for (const char c : name) RILL_FUZZ_CHECK(static_cast<uint8_t>(c) > 0x20);
  if (MayNameFileItself(component)) {
    RILL_FUZZ_CHECK(StaysInItsFolder(component));
  }
  return 0;
}
