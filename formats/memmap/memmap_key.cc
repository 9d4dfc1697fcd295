// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_key.h"

#include <cstdint>

#include "absl/strings/ascii.h"

namespace rill::formats_internal {
namespace {

bool IsEncoded(char c) {
  const uint8_t byte = static_cast<uint8_t>(c);
  return byte < 0x20 || byte == 0x7F ||
         absl::string_view("/<>:\"|?*\\ %").find(c) != absl::string_view::npos;
}

}  // namespace

// '%' is encoded too, so that no two components have one name. Slashes, "." and
// ".." never come through, so a name cannot leave its folder.
std::string MemmapFileName(absl::string_view component) {
  if (component.empty()) return "%";
  if (component == ".") return "%2E";
  if (component == "..") return "%2E%2E";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string name;
  for (const char c : component) {
    if (IsEncoded(c)) {
      const uint8_t byte = static_cast<uint8_t>(c);
      name += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      name += c;
    }
  }
  return name;
}

// Older files bear the component unencoded. One that could lead out of the
// folder, here or on another system, is not looked for.
bool MayNameFileItself(absl::string_view component) {
  const bool is_drive = component.size() >= 2 && component[1] == ':' &&
                        absl::ascii_isalpha(component[0]);
  return !component.empty() && component != "." && component != ".." &&
         !is_drive &&
         component.find_first_of(absl::string_view("/\\\0", 3)) ==
             absl::string_view::npos;
}

bool IsReservedMemmapName(absl::string_view component) {
  return component == "shape" || component == "device" || component == "_type";
}

}  // namespace rill::formats_internal
