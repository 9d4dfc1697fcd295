// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/fast_crc.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill::recorder_internal {

#if defined(__x86_64__)

namespace {

__attribute__((target("sse4.2"))) uint32_t ByInstruction(
    uint32_t crc, absl::string_view bytes) {
  uint64_t state = ~crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    state = __builtin_ia32_crc32di(state, word);
    at += sizeof(word);
  }
  auto rest = static_cast<uint32_t>(state);
  for (; left > 0; --left) {
    rest = __builtin_ia32_crc32qi(rest, static_cast<uint8_t>(*at++));
  }
  return ~rest;
}

}  // namespace

absl::crc32c_t ExtendCrc(absl::crc32c_t crc, absl::string_view bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (!has_instruction) return absl::ExtendCrc32c(crc, bytes);
  return absl::crc32c_t{ByInstruction(static_cast<uint32_t>(crc), bytes)};
}

#else

absl::crc32c_t ExtendCrc(absl::crc32c_t crc, absl::string_view bytes) {
  return absl::ExtendCrc32c(crc, bytes);
}

#endif

}  // namespace rill::recorder_internal
