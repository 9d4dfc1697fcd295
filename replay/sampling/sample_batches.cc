// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_batches.h"

#include <cstddef>
#include <cstring>

#include "absl/crc/crc32c.h"

namespace rill::replay_internal {

uint32_t DrawDigest(absl::Span<const Draw> draws, absl::Span<const Slot> rows) {
  // Packed, as a Draw ends with bytes that nobody writes.
  constexpr size_t kDrawBytes = 20, kDraws = 64;
  char packed[kDraws * kDrawBytes];
  absl::crc32c_t crc{0};
  while (!draws.empty()) {
    const auto some = draws.subspan(0, kDraws);
    char* at = packed;
    for (const Draw& draw : some) {
      std::memcpy(at, &draw.slot, 8);
      std::memcpy(at + 8, &draw.generation, 8);
      std::memcpy(at + 16, &draw.weight, 4);
      at += kDrawBytes;
    }
    crc = absl::ExtendCrc32c(
        crc, absl::string_view(packed, some.size() * kDrawBytes));
    draws.remove_prefix(some.size());
  }
  return static_cast<uint32_t>(absl::ExtendCrc32c(crc, BytesOf(rows)));
}

}  // namespace rill::replay_internal
