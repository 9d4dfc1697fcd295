// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/piece_scanner.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace rill::samplers_internal {
namespace {

// The first i in [begin, size) with flags[i] != 0, else INT64_MAX.
int64_t FindFlag(absl::Span<const uint8_t> flags, int64_t begin) {
  constexpr int64_t kWords = 8;
  const auto size = static_cast<int64_t>(flags.size());
  int64_t i = begin;
  uint64_t words[kWords];
  for (; i + 8 * kWords <= size; i += 8 * kWords) {
    std::memcpy(words, flags.data() + i, sizeof(words));
    // Flags are nearly all 0, so whole lines are tested at once.
    uint64_t any = 0;
    for (const uint64_t word : words) any |= word;
    if (any == 0) continue;
    for (int64_t word = 0; words[word] == 0; ++word) i += 8;
    break;
  }
  while (i < size && flags[i] == 0) ++i;
  return i < size ? i : std::numeric_limits<int64_t>::max();
}

// The first i in [begin, size) with ids[i] != ids[begin], else size.
int64_t FindChange(absl::Span<const int64_t> ids, int64_t begin) {
  constexpr int64_t kBlock = 8;
  const auto size = static_cast<int64_t>(ids.size());
  const int64_t id = ids[begin];
  int64_t i = begin;
  for (; i + kBlock <= size; i += kBlock) {
    int64_t any = 0;
    for (int64_t j = 0; j < kBlock; ++j) any |= ids[i + j] ^ id;
    if (any != 0) break;
  }
  while (i < size && ids[i] == id) ++i;
  return i;
}

}  // namespace

PieceScanner::Piece PieceScanner::Next(int64_t first, int64_t limit) {
  // Positions of the next end and the next change are kept between calls, so
  // each flag is read once.
  int64_t end = first + limit;
  if (!ids_.empty()) {
    if (next_change_ <= first) next_change_ = FindChange(ids_, first);
    end = std::min(end, next_change_);
  }
  bool is_end = false;
  if (const int64_t next = NextEnd(first); next < end) {
    is_end = true;
    end = next + 1;
  }
  return {.count = end - first, .is_end = is_end};
}

int64_t PieceScanner::NextEnd(int64_t first) {
  if (next_end_ < first) next_end_ = FindFlag(ends_, first);
  return next_end_;
}

}  // namespace rill::samplers_internal
