// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_batches.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rill::replay_internal {
namespace {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
constexpr uint64_t kOther = 0xBF58476D1CE4E5B9u;

// A draw and a number beside it. Its place is that multiple of kStep.
uint64_t Product(uint64_t place, const Draw& draw, float number) {
  const uint64_t rest = std::rotl(static_cast<uint64_t>(draw.generation), 32) ^
                        std::bit_cast<uint32_t>(number);
  return (place ^ static_cast<uint64_t>(draw.slot)) * (rest ^ kOther);
}

uint32_t HalvesOf(uint64_t sum) {
  return static_cast<uint32_t>(sum ^ (sum >> 32));
}

}  // namespace

// A sum of one product a draw, so that no number waits for the one before. A
// CRC32C of the draws' bytes takes seven times as long.
uint32_t DrawDigest(absl::Span<const Draw> draws, absl::Span<const Slot> rows) {
  uint64_t sum = draws.size(), place = kStep;
  for (const Draw& draw : draws) {
    sum += Product(place, draw, draw.weight);
    place += kStep;
  }
  for (const Slot row : rows) {
    sum += (place ^ static_cast<uint64_t>(row)) * kOther;
    place += kStep;
  }
  return HalvesOf(sum);
}

uint32_t PriorityDigest(absl::Span<const Draw> rows,
                        absl::Span<const float> priorities) {
  const size_t size = std::min(rows.size(), priorities.size());
  uint64_t sum = size, place = kStep;
  for (size_t i = 0; i < size; ++i, place += kStep) {
    sum += Product(place, rows[i], priorities[i]);
  }
  return HalvesOf(sum);
}

}  // namespace rill::replay_internal
