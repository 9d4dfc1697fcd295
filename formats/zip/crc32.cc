// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/crc32.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "rill/formats/zip/little_endian.h"

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/formats/zip/crc32.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

// Where there is an instruction that multiplies without carries.
#undef RILL_HAS_CLMUL_
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || \
    HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSSE3
#define RILL_HAS_CLMUL_ 0
#else
#define RILL_HAS_CLMUL_ 1
#endif

HWY_BEFORE_NAMESPACE();
namespace rill::formats_internal {
namespace HWY_NAMESPACE {

// Takes the longest part of `bytes` that it can, at least 64 bytes or none. It
// leaves in `rest` 16 bytes whose CRC from nothing is that of the part after
// `crc`. Gives back the part's length.
//
// Folding as in Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction" (Intel, 2009), bits reflected. Bits that are N
// further on are congruent to themselves times x^N modulo the polynomial.
size_t FoldBytes(uint32_t crc, const char* bytes, size_t size, char* rest) {
#if RILL_HAS_CLMUL_
  namespace hn = hwy::HWY_NAMESPACE;
  using D = hn::Full128<uint64_t>;
  using V = hn::Vec<D>;
  const D d;
  constexpr size_t kStep = 64;
  if (size < kStep) return 0;
  const auto load = [&](size_t at) {
    return hn::LoadU(d, reinterpret_cast<const uint64_t*>(bytes + at));
  };
  const auto fold = [](V value, V by, V next) {
    return hn::Xor(
        next, hn::Xor(hn::CLMulLower(value, by), hn::CLMulUpper(value, by)));
  };
  // Constants of the paper for this polynomial: k1 and k2, which move 512 bits
  // on, and k3 and k4, which move 128.
  const V by_512 = hn::Dup128VecFromValues(d, 0x0154442BD4, 0x01C6E41596);
  const V by_128 = hn::Dup128VecFromValues(d, 0x01751997D0, 0x00CCAA009E);
  // Four accumulators, so that the multiplications of one step do not wait for
  // one another. The CRC so far goes into the first 32 bits.
  V a = hn::Xor(load(0), hn::Dup128VecFromValues(d, crc, 0));
  V b = load(16);
  V c = load(32);
  V e = load(48);
  size_t at = kStep;
  for (; size - at >= kStep; at += kStep) {
    a = fold(a, by_512, load(at));
    b = fold(b, by_512, load(at + 16));
    c = fold(c, by_512, load(at + 32));
    e = fold(e, by_512, load(at + 48));
  }
  b = fold(a, by_128, b);
  c = fold(b, by_128, c);
  e = fold(c, by_128, e);
  hn::StoreU(e, d, reinterpret_cast<uint64_t*>(rest));
  return at;
#else
  (void)crc, (void)bytes, (void)size, (void)rest;
  return 0;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::formats_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::formats_internal {
namespace {

HWY_EXPORT(FoldBytes);

constexpr int kSlices = 16;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: the CRC of byte b followed by k bytes of zero.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    }
    tables[0][b] = crc;
  }
  for (int k = 1; k < kSlices; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

// Four bytes, the first of which has `after` + 3 bytes behind it.
uint32_t Four(uint32_t word, int after) {
  return kTables[after + 3][word & 0xFF] ^
         kTables[after + 2][(word >> 8) & 0xFF] ^
         kTables[after + 1][(word >> 16) & 0xFF] ^ kTables[after][word >> 24];
}

// Slicing by 16: the tables for 16 bytes are looked up independently. Byte by
// byte each look-up would wait for the one before.
uint32_t WithTables(uint32_t crc, absl::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    crc = Four(crc ^ LoadLittle<uint32_t>(at), 12) ^
          Four(LoadLittle<uint32_t>(at + 4), 8) ^
          Four(LoadLittle<uint32_t>(at + 8), 4) ^
          Four(LoadLittle<uint32_t>(at + 12), 0);
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xFF];
  }
  return crc;
}

}  // namespace

uint32_t ExtendCrc32(uint32_t crc, absl::string_view bytes) {
  // The CRC of zip files is inverted before and after; in between it is a plain
  // remainder, which the parts share.
  crc = ~crc;
  char rest[16];
  const size_t folded =
      HWY_DYNAMIC_DISPATCH(FoldBytes)(crc, bytes.data(), bytes.size(), rest);
  if (folded > 0) crc = WithTables(0, absl::string_view(rest, sizeof(rest)));
  return ~WithTables(crc, bytes.substr(folded));
}

}  // namespace rill::formats_internal
#endif  // HWY_ONCE
