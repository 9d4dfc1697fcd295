// SPDX-License-Identifier: Apache-2.0
// After the paper's reference: words of 8 bytes, little-endian, two rounds a
// word and four at the end. The last word has the rest of the bytes, and the
// length modulo 256 in its highest byte.
#include "rill/transforms/values/sip_hash.h"

#include <bit>
#include <cstring>

namespace rill::transforms_internal {
namespace {

struct State {
  uint64_t v0, v1, v2, v3;

  void Round() {
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
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

// Words are copied from bytes as they are.
static_assert(std::endian::native == std::endian::little);

// Up to 8 bytes, the first lowest.
uint64_t Word(const std::byte* bytes, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

}  // namespace

uint64_t SipHash(uint64_t key0, uint64_t key1,
                 absl::Span<const std::byte> bytes) {
  State state = {key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d,
                 key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573};
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    state.Absorb(Word(bytes.data() + at, 8));
  }
  const size_t rest = bytes.size() - at;
  const uint64_t last = rest == 0 ? 0 : Word(bytes.data() + at, rest);
  // The shift drops all but the lowest byte of the length.
  state.Absorb(last | (uint64_t{bytes.size()} << 56));
  // The paper's constant, which sets the end apart from a word.
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace rill::transforms_internal
