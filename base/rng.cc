// SPDX-License-Identifier: Apache-2.0
#include "rill/base/rng.h"

#include "Random123/philox.h"

namespace rill {
namespace {

constexpr float kTwoToMinus24 = 1.0f / (uint32_t{1} << 24);

}  // namespace

Rng::Block Rng::Bits(uint64_t batch, uint32_t draw) const {
  const philox4x32_ctr_t counter = {{draw, stream_,
                                     static_cast<uint32_t>(batch),
                                     static_cast<uint32_t>(batch >> 32)}};
  const philox4x32_key_t key = {
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)}};
  const philox4x32_ctr_t bits = philox4x32_R(10, counter, key);
  return {bits.v[0], bits.v[1], bits.v[2], bits.v[3]};
}

uint64_t Rng::Bits64(uint64_t batch, uint32_t draw) const {
  return LowBits64(Bits(batch, draw));
}

int64_t Rng::UniformInt(uint64_t batch, uint32_t draw, int64_t bound) const {
  return BoundedInt(Bits64(batch, draw), bound);
}

double Rng::UniformDouble(uint64_t batch, uint32_t draw) const {
  return UnitDouble(Bits64(batch, draw));
}

float Rng::UniformFloat(uint64_t batch, uint32_t draw) const {
  // A float holds 24 bits exactly. More would be rounded, some of them to 1.
  return static_cast<float>(Bits64(batch, draw) >> 40) * kTwoToMinus24;
}

}  // namespace rill
