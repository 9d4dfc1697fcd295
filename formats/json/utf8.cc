// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/utf8.h"

#include <cstddef>
#include <cstdint>

namespace rill::formats_internal {
namespace {

struct Form {
  uint8_t mask;
  uint8_t lead;
  int tail;        // Bytes behind the lead.
  uint32_t least;  // Smaller code points have a shorter form.
};
// Lead bytes by the number of bytes that follow. Continuation bytes, and those
// from 0xF8 on, match none.
constexpr Form kForms[] = {
    {0x80, 0x00, 0, 0},
    {0xE0, 0xC0, 1, 0x80},
    {0xF0, 0xE0, 2, 0x800},
    {0xF8, 0xF0, 3, 0x10000},
};

// Bytes of the character that `text` starts with; 0 where it is none.
size_t CharacterSize(absl::string_view text) {
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  for (const Form& form : kForms) {
    if ((lead & form.mask) != form.lead) continue;
    if (static_cast<int>(text.size()) <= form.tail) return 0;
    uint32_t point = lead & static_cast<uint8_t>(~form.mask);
    for (int i = 1; i <= form.tail; ++i) {
      const uint8_t byte = static_cast<uint8_t>(text[i]);
      if ((byte & 0xC0) != 0x80) return 0;
      point = (point << 6) | (byte & 0x3F);
    }
    const bool is_surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (point < form.least || point > 0x10FFFF || is_surrogate) return 0;
    return static_cast<size_t>(form.tail) + 1;
  }
  return 0;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace rill::formats_internal
