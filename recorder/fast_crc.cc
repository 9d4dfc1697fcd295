// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/fast_crc.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rill::recorder_internal {

#if defined(__x86_64__)

namespace {

// Three runs of words that follow one another take as long as one, because the
// instruction has the answer after three cycles and a new question in each. A
// checksum moves behind a run of zeros by a product of polynomials over GF(2).

// A polynomial's lowest bit is the coefficient of x^31.
constexpr uint32_t TimesX(uint32_t polynomial) {
  return (polynomial >> 1) ^ ((polynomial & 1) * 0x82F63B78u);
}
// x^n modulo CRC32C's polynomial.
constexpr uint32_t PowerOfX(int n) {
  uint32_t power = 0x80000000u;
  for (; n > 0; --n) power = TimesX(power);
  return power;
}

template <typename T>
T PieceAt(const char* at) {
  T piece;
  std::memcpy(&piece, at, sizeof(piece));
  return piece;
}
uint64_t WordAt(const char* at) { return PieceAt<uint64_t>(at); }

// Takes three runs of kWords words each off the front, as often as they are
// there.
template <int kWords>
__attribute__((target("sse4.2,pclmul"))) uint64_t TakeThrees(
    uint64_t state, absl::string_view* bytes) {
  constexpr size_t kRun = kWords * sizeof(uint64_t);
  // The product of two reflected numbers of 32 bits is short of one x, and the
  // instruction with which it is reduced multiplies by x^32.
  constexpr int kReduced = 33;
  constexpr uint64_t kOne = PowerOfX(8 * static_cast<int>(kRun) - kReduced);
  constexpr uint64_t kTwo = PowerOfX(16 * static_cast<int>(kRun) - kReduced);
  const __m128i factors = _mm_set_epi64x(kOne, kTwo);
  while (bytes->size() >= 3 * kRun) {
    const char* const at = bytes->data();
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kRun; i += sizeof(uint64_t)) {
      state = _mm_crc32_u64(state, WordAt(at + i));
      second = _mm_crc32_u64(second, WordAt(at + kRun + i));
      third = _mm_crc32_u64(third, WordAt(at + 2 * kRun + i));
    }
    const __m128i sums = _mm_set_epi64x(static_cast<int64_t>(second),
                                        static_cast<int64_t>(state));
    const __m128i moved =
        _mm_xor_si128(_mm_clmulepi64_si128(sums, factors, 0x00),
                      _mm_clmulepi64_si128(sums, factors, 0x11));
    state = third ^
            _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(moved)));
    bytes->remove_prefix(3 * kRun);
  }
  return state;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t ByInstruction(
    uint32_t crc, absl::string_view bytes) {
  uint64_t state = ~crc;
  if (bytes.size() >= 96) {
    state = TakeThrees<64>(state, &bytes);
    state = TakeThrees<4>(state, &bytes);
  }
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t)) {
    state = _mm_crc32_u64(state, WordAt(at));
    at += sizeof(uint64_t);
  }
  auto rest = static_cast<uint32_t>(state);
  if ((left & 4) != 0) {
    rest = _mm_crc32_u32(rest, PieceAt<uint32_t>(at));
    at += 4;
  }
  if ((left & 2) != 0) {
    rest = _mm_crc32_u16(rest, PieceAt<uint16_t>(at));
    at += 2;
  }
  if ((left & 1) != 0) rest = _mm_crc32_u8(rest, PieceAt<uint8_t>(at));
  return ~rest;
}

}  // namespace

absl::crc32c_t ExtendCrc(absl::crc32c_t crc, absl::string_view bytes) {
  static const bool has_instructions = __builtin_cpu_supports("sse4.2") != 0 &&
                                       __builtin_cpu_supports("pclmul") != 0;
  if (!has_instructions) return absl::ExtendCrc32c(crc, bytes);
  return absl::crc32c_t{ByInstruction(static_cast<uint32_t>(crc), bytes)};
}

#else

absl::crc32c_t ExtendCrc(absl::crc32c_t crc, absl::string_view bytes) {
  return absl::ExtendCrc32c(crc, bytes);
}

#endif

}  // namespace rill::recorder_internal
