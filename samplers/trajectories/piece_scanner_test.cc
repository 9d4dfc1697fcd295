// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/piece_scanner.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::samplers_internal {
namespace {

// Lengths around the blocks that are read at a time, values rare and frequent.
TEST(PieceScannerTest, AgreesWithALookAtEveryRow) {
  const Rng rng(20240722);
  for (uint64_t round = 0; round < 2000; ++round) {
    const int64_t size = rng.UniformInt(round, 0, 300) + 1;
    const int64_t rarity = rng.UniformInt(round, 1, 150) + 1;
    const int64_t limit = rng.UniformInt(round, 2, 200) + 1;
    std::vector<uint8_t> ends;
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < size; ++i) {
      const auto draw = static_cast<uint32_t>(2 * i + 3);
      const bool changes = rng.UniformInt(round, draw, rarity) == 0;
      if (round % 3 != 0) {
        ends.push_back(rng.UniformInt(round, draw + 1, rarity) == 0 ? 1 + i % 2
                                                                    : 0);
      }
      if (round % 3 != 1) {
        ids.push_back((ids.empty() ? 5 : ids.back()) ^ (changes ? 1 << 8 : 0));
      }
    }
    PieceScanner scanner(ends, ids);
    for (int64_t first = 0; first < size;) {
      const int64_t most = std::min(limit, size - first);
      PieceScanner::Piece want = {.count = 1};
      while (true) {
        const int64_t last = first + want.count - 1;
        want.is_end = !ends.empty() && ends[last] != 0;
        if (want.is_end || want.count == most) break;
        if (!ids.empty() && ids[last + 1] != ids[first]) break;
        ++want.count;
      }
      const PieceScanner::Piece got = scanner.Next(first, most);
      ASSERT_EQ(got.count, want.count) << "round " << round << " at " << first;
      ASSERT_EQ(got.is_end, want.is_end) << "round " << round;
      int64_t next_end = first;
      while (next_end < size && (ends.empty() || ends[next_end] == 0)) {
        ++next_end;
      }
      ASSERT_EQ(scanner.NextEnd(first), next_end < size ? next_end : INT64_MAX);
      first += got.count;
    }
  }
}

}  // namespace
}  // namespace rill::samplers_internal
