// SPDX-License-Identifier: Apache-2.0
#include "rill/base/random_blocks.h"

#include <cstddef>
#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/base/random_blocks.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::base_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Philox4x32-10 with a word of the counter in each 64-bit lane. Only the lower
// halves count: products take nothing else, and what an exclusive or leaves in
// the upper ones is never looked at. Two vectors of counters go side by side,
// as each step of one waits for the one before. Returns how many blocks were
// filled.
size_t FillBlocks(uint64_t seed, uint32_t stream, uint64_t batch,
                  uint32_t first_draw, absl::Span<Rng::Block> blocks) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const auto product = [&](V multiplier, V word) HWY_ATTR {
    return hn::MulEven(hn::BitCast(d32, multiplier), hn::BitCast(d32, word));
  };
  // The multipliers, the order of words and the steps of the keys (below) are
  // those of Philox4x32 in the paper that rng.h names.
  const V m0 = hn::Set(d, 0xD2511F53u);
  const V m1 = hn::Set(d, 0xCD9E8D57u);
  const auto turn = [&](V key0, V key1, V& c0, V& c1, V& c2, V& c3) HWY_ATTR {
    const V p0 = product(m0, c0);
    const V p1 = product(m1, c2);
    c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, key0);
    c1 = p1;
    c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, key1);
    c3 = p0;
  };
  // Words 0 and 1 of a block make one 64-bit number, 2 and 3 the next:
  // little-endian, that is the order of the four words in memory.
  const V low_half = hn::Set(d, 0xFFFFFFFFu);
  const auto store = [&](V c0, V c1, V c2, V c3, size_t at) HWY_ATTR {
    const V low = hn::OrAnd(hn::ShiftLeft<32>(c1), c0, low_half);
    const V high = hn::OrAnd(hn::ShiftLeft<32>(c3), c2, low_half);
    hn::StoreInterleaved2(low, high, d,
                          reinterpret_cast<uint64_t*>(blocks.data() + at));
  };
  const size_t num_vectors = blocks.size() / lanes;
  // The last of an odd number goes beside itself.
  for (size_t vector = 0; vector < num_vectors; vector += 2) {
    const size_t a = vector * lanes;
    const size_t b = vector + 1 < num_vectors ? a + lanes : a;
    V a0 = hn::Iota(d, first_draw + static_cast<uint32_t>(a));
    V b0 = hn::Iota(d, first_draw + static_cast<uint32_t>(b));
    V a1 = hn::Set(d, stream);
    V a2 = hn::Set(d, batch & 0xFFFFFFFFu);
    V a3 = hn::Set(d, batch >> 32);
    V b1 = a1;
    V b2 = a2;
    V b3 = a3;
    uint32_t k0 = static_cast<uint32_t>(seed);
    uint32_t k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const V key0 = hn::Set(d, k0);
      const V key1 = hn::Set(d, k1);
      turn(key0, key1, a0, a1, a2, a3);
      turn(key0, key1, b0, b1, b2, b3);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    store(a0, a1, a2, a3, a);
    store(b0, b1, b2, b3, b);
  }
  return num_vectors * lanes;
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::base_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill {
namespace base_internal {
HWY_EXPORT(FillBlocks);

size_t FillMost(const Rng& rng, uint64_t batch, uint32_t first_draw,
                absl::Span<Rng::Block> blocks) {
  return HWY_DYNAMIC_DISPATCH(FillBlocks)(rng.seed(), rng.stream(), batch,
                                          first_draw, blocks);
}

}  // namespace base_internal

void RandomBlocks(const Rng& rng, uint64_t batch, uint32_t first_draw,
                  absl::Span<Rng::Block> blocks) {
  size_t done = base_internal::FillMost(rng, batch, first_draw, blocks);
  for (; done < blocks.size(); ++done) {
    // Fewer than a vector's lanes: the scalar code gives the same bits.
    blocks[done] = rng.Bits(batch, first_draw + static_cast<uint32_t>(done));
  }
}

}  // namespace rill
#endif  // HWY_ONCE
