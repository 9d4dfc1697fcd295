// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_RANDOM_BLOCKS_H_
#define RILL_BASE_RANDOM_BLOCKS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill {

// blocks[i] = rng.Bits(batch, first_draw + i), draws modulo 2^32: the random
// numbers of a batch at once.
//
// Thread-safety: thread-safe.
// Cost: O(blocks), several at a time where the processor has vectors.
//
// Example (RandomBlocksTest.Example runs it):
//   std::vector<Rng::Block> blocks(256);
//   RandomBlocks(rng, /*batch=*/3, /*first_draw=*/0, absl::MakeSpan(blocks));
void RandomBlocks(const Rng& rng, uint64_t batch, uint32_t first_draw,
                  absl::Span<Rng::Block> blocks);

}  // namespace rill

#endif  // RILL_BASE_RANDOM_BLOCKS_H_
