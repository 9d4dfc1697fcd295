// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/sip_hash.h"

#include <bit>
#include <cstring>

#include "rill/transforms/values/sip_hash_state.h"

namespace rill::transforms_internal {
namespace {

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
  SipHashState state(key0, key1);
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    state.Absorb(Word(bytes.data() + at, 8));
  }
  const size_t rest = bytes.size() - at;
  const uint64_t last = rest == 0 ? 0 : Word(bytes.data() + at, rest);
  return state.End(last, bytes.size());
}

}  // namespace rill::transforms_internal
