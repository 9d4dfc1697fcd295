// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_MIXED_SEED_H_
#define RILL_BASE_MIXED_SEED_H_

#include <cstdint>

namespace rill {

// One seed for a generator (base/rng.h) that two say: its owner's `own`, and
// that of who runs it. With `other` 0 it is `own`. For one of them fixed it is
// one-to-one in the other, so no two seeds meet.
//
// Both are often 0, 1, 2. The factor spreads `other` over all bits: it is 2^64
// divided by the golden ratio, and odd.
inline uint64_t MixedSeed(uint64_t own, uint64_t other) {
  return own ^ (other * 0x9E3779B97F4A7C15);
}

}  // namespace rill

#endif  // RILL_BASE_MIXED_SEED_H_
