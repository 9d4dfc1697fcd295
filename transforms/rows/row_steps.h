// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_STEPS_H_
#define RILL_TRANSFORMS_ROWS_ROW_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/rows/row_map.h"

namespace rill {

// A RowMap that is one step, done by the kernels of the host.
//
// Leaves: kCast takes dtypes with arithmetic; kClip and kSign those but bool;
//   kScaleThenShift, kShiftThenDivide and kIsPositive float32 and float64.
// INVALID_ARGUMENT where scale or loc is not finite or a scale is 0, as
// float32, or their lengths differ and none is 1. So too where low > high or
// one is NaN (they may be infinite), or a crop starts before 0, is empty or
// ends past 2^63. MapSpec refuses integers of which none lies in [low, high].
// Thread-safety: immutable.
absl::StatusOr<std::shared_ptr<const RowMap>> MakeRowStep(const RowStep& step);

// A RowMap that changes no byte of a row: its MapSpec is `map_spec`.
std::shared_ptr<const RowMap> MakeReshape(
    std::function<absl::StatusOr<LeafSpec>(const LeafSpec&)> map_spec);

namespace transforms_internal {

// Parts of RowMaps. INVALID_ARGUMENT of a MapSpec: got <got>, want <want>.
absl::Status Misfit(const LeafSpec& got, absl::string_view want);

// Misfit where `leaf` looks like images of channels last, [..., H, W, C]: it is
// 1, 3 or 4 wide, and has more than four channels. For what works on the last
// two dimensions as on rows and columns.
absl::Status CheckChannelsFirst(const LeafSpec& leaf);

// Elements of `leaf` in another order or number: they keep the bounds that all
// of them have, and no others.
LeafSpec WithShape(const LeafSpec& leaf, const Shape& shape);

// Calls fn(T()) with a type of `size` bytes, that of a dtype. Elements are
// moved by plain loads and stores, whatever their dtype.
template <typename Fn>
void WithElement(int64_t size, Fn&& fn) {
  struct Sixteen {
    uint64_t half[2];
  };
  switch (size) {
    case 1:
      return fn(uint8_t());
    case 2:
      return fn(uint16_t());
    case 4:
      return fn(uint32_t());
    case 8:
      return fn(uint64_t());
    default:
      return fn(Sixteen());
  }
}

// MapRows of a step of kind kCrop.
struct CropPlace {
  int64_t top;
  int64_t left;
  int64_t height;
  int64_t width;
};
void CropRows(const CropPlace& crop, DType dtype, const Shape& shape,
              int64_t count, const std::byte* from, std::byte* to);

}  // namespace transforms_internal

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_STEPS_H_
