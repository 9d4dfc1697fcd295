// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_batches.h"

#include <bit>
#include <cstdint>

namespace rill::replay_internal {
namespace {

// The halves of the product, one upon the other: a bit of either number changes
// many of the others.
uint64_t Folded(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

// A sum of one product a draw, so that no number waits for the one before. A
// CRC32C of the draws' bytes takes seven times as long.
uint32_t DrawDigest(absl::Span<const Draw> draws, absl::Span<const Slot> rows) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  constexpr uint64_t kOther = 0xBF58476D1CE4E5B9u;
  uint64_t sum = draws.size(), place = kStep;
  for (const Draw& draw : draws) {
    const uint64_t rest =
        std::rotl(static_cast<uint64_t>(draw.generation), 32) ^
        std::bit_cast<uint32_t>(draw.weight);
    sum += Folded(place ^ static_cast<uint64_t>(draw.slot), rest ^ kOther);
    place += kStep;
  }
  for (const Slot row : rows) {
    sum += Folded(place ^ static_cast<uint64_t>(row), kOther);
    place += kStep;
  }
  return static_cast<uint32_t>(sum ^ (sum >> 32));
}

}  // namespace rill::replay_internal
