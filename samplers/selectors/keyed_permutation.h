// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_KEYED_PERMUTATION_H_
#define RILL_SAMPLERS_SELECTORS_KEYED_PERMUTATION_H_

#include <cstdint>
#include <vector>

#include "rill/base/rng.h"

namespace rill::samplers_internal {

// A random order of 0 .. n - 1 that is a function of (seed, number). Any place
// of it is known without the others, so an epoch of a large storage needs no
// list.
//
// Up to kListed numbers it is a list, each order with the same probability.
// Above, it is a Feistel network of eight rounds over ceil(sqrt(n)) x
// ceil(n / ceil(sqrt(n))) numbers, with Philox as the round function. It is
// applied again where it leaves [0, n) (Black and Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002).
//
// Thread-safety: thread-compatible.
// Cost: At about 8 calls of Philox, 50 ns; Set O(1), or O(n) where it is a
// list.
class KeyedPermutation {
 public:
  static constexpr int64_t kListed = 4096;

  // `size` >= 0. Does nothing where it is this one already.
  void Set(uint64_t seed, uint64_t number, int64_t size);

  // `place` in [0, size).
  int64_t At(int64_t place) const;

 private:
  int64_t Round(int64_t round, int64_t half, int64_t bound) const;

  Rng rng_ = Rng(0);
  uint64_t number_ = 0;
  int64_t size_ = 0;
  int64_t rows_ = 1, columns_ = 1;  // Of the network.
  std::vector<int64_t> list_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_KEYED_PERMUTATION_H_
