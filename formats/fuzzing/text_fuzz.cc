// SPDX-License-Identifier: Apache-2.0
// The small judges of texts (UTF-8, depth of JSON, plain paths) against others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "rill/formats/json/json_text.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/plain_path.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

std::string Encode(uint32_t point) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3F));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | (point >> 6)), tail(0)};
  if (point < 0x10000) {
    return {static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0)};
  }
  return {static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0)};
}

// Takes code points for granted, and looks whether they encode to the same.
bool EncodesToItself(absl::string_view text) {
  std::string again;
  for (size_t i = 0; i < text.size();) {
    const uint8_t lead = static_cast<uint8_t>(text[i++]);
    const int tails = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t point = tails == 0 ? lead : lead & (0x3F >> tails);
    for (int t = 0; t < tails; ++t) {
      if (i == text.size()) return false;
      point = point << 6 | (static_cast<uint8_t>(text[i++]) & 0x3F);
    }
    const bool is_surrogate = point >= 0xD800 && point < 0xE000;
    if (is_surrogate || point > 0x10FFFF) return false;
    again += Encode(point);
  }
  return again == text;
}

int DepthOf(const nlohmann::json& json) {
  if (!json.is_structured()) return 0;
  int deepest = 0;
  for (const auto& value : json) deepest = std::max(deepest, DepthOf(value));
  return deepest + 1;
}

void TryDepth(absl::string_view text) {
  const int depth = JsonDepth(text);
  RILL_FUZZ_CHECK(depth >= 0);
  if (depth > kMaxJsonDepth) return;
  const auto json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  // A name that comes twice drops the value that came first.
  if (!json.is_discarded()) RILL_FUZZ_CHECK(DepthOf(json) <= depth);
  const auto list = nlohmann::json::parse(
      std::string("[") + std::string(text) + "]", nullptr, false);
  if (!list.is_discarded()) {
    RILL_FUZZ_CHECK(JsonDepth("[" + std::string(text) + "]") == depth + 1);
  }
}

void TryPath(absl::string_view text) {
  if (!IsPlainRelativePath(text)) return;
  const std::filesystem::path path{std::string(text)};
  RILL_FUZZ_CHECK(path.is_relative() && path.has_filename());
  RILL_FUZZ_CHECK(path.lexically_normal() == path);
  RILL_FUZZ_CHECK(path.begin()->string() != "..");
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::formats_internal;  // NOLINT: the target's only user.
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  RILL_FUZZ_CHECK(IsUtf8(text) == EncodesToItself(text));
  TryDepth(text);
  TryPath(text);
  return 0;
}
