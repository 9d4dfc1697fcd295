// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_LANE_WORK_H_
#define RILL_TRANSFORMS_STEPS_LANE_WORK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {

// Rows of `width` bytes a lane, one after another, that go from one leaf to
// another.
struct LaneCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t width = 0;
  bool repeats = false;  // On a device: `from` is one row.
};

// Copies the rows of the lanes that `mask` names, on the stream's device; null:
// all. `to` of one is no leaf of another. A launch for up to 48 copies.
absl::Status CopyLanes(absl::Span<const LaneCopy> copies, int64_t lanes,
                       const uint8_t* mask, const Stream& stream);

// Sets the elements of these rows of a contiguous leaf [lanes, ...] on the
// stream's device. `value` is one element. T is the leaf's dtype.
absl::Status FillLanesWith(const void* value, const uint8_t* mask,
                           const Tensor& leaf, const Stream& stream);
template <typename T>
absl::Status FillLanes(T value, const uint8_t* mask, const Tensor& leaf,
                       const Stream& stream) {
  return FillLanesWith(&value, mask, leaf, stream);
}

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STEPS_LANE_WORK_H_
