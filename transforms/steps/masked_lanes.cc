// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/steps/masked_lanes.h"

#include "hwy/highway.h"

namespace rill::transforms_internal {

namespace hn = hwy::HWY_NAMESPACE;

uint64_t MaskBits(absl::Span<const uint8_t> mask) {
  const hn::CappedTag<uint8_t, 64> d;
  const size_t lanes = hn::Lanes(d);
  uint64_t bits = 0;
  size_t at = 0;
  for (; at + lanes <= mask.size(); at += lanes) {
    const auto is_set = hn::Ne(hn::LoadU(d, &mask[at]), hn::Zero(d));
    uint64_t part = 0;
    hn::StoreMaskBits(d, is_set, reinterpret_cast<uint8_t*>(&part));
    bits |= part << at;
  }
  for (; at < mask.size(); ++at) bits |= uint64_t{mask[at] != 0} << at;
  return bits;
}

}  // namespace rill::transforms_internal
