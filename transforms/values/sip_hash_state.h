// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_SIP_HASH_STATE_H_
#define RILL_TRANSFORMS_VALUES_SIP_HASH_STATE_H_

#include <bit>
#include <cstdint>

namespace rill::transforms_internal {

// SipHash-2-4 word by word, after the paper's reference: words of 8 bytes,
// little-endian, two rounds a word and four at the end.
struct SipHashState {
  constexpr SipHashState(uint64_t key0, uint64_t key1)
      : v0(key0 ^ 0x736f6d6570736575),
        v1(key1 ^ 0x646f72616e646f6d),
        v2(key0 ^ 0x6c7967656e657261),
        v3(key1 ^ 0x7465646279746573) {}

  constexpr void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
  // `last` has the bytes behind the last whole word, of `size` in all.
  constexpr uint64_t End(uint64_t last, uint64_t size) {
    // The shift drops all but the lowest byte of the length.
    Absorb(last | (size << 56));
    // The paper's constant, which sets the end apart from a word.
    v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) Round();
    return v0 ^ v1 ^ v2 ^ v3;
  }

  uint64_t v0, v1, v2, v3;

 private:
  constexpr void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_VALUES_SIP_HASH_STATE_H_
