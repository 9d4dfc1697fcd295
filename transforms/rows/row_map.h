// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_MAP_H_
#define RILL_TRANSFORMS_ROWS_ROW_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {

// One step of what becomes of a row, as data: for the kernel of the host
// (row_steps.h), for a gather that does it on the way, for kernels of devices.
//
// Numerics: numbers of the step are rounded to float32 for float32 elements.
// x * scale + loc is then rounded once, as std::fma does. (x - loc) / scale is
// computed in double and then rounded. Results are the same on every machine.
struct RowStep {
  enum class Kind : uint8_t {
    kScaleThenShift,   // x * scale + loc
    kShiftThenDivide,  // (x - loc) / scale
    kCast,             // To `dtype`, as Cast does.
    kClip,             // To [low, high]; NaN stays (see MapSpec).
    kSign,             // -1, 0 or 1; NaN stays.
    kIsPositive,       // 1 where x > 0, else 0; float32 to float32.
    kUnitInterval,     // uint8 to float32: x / 255, rounded once.
    kChannelsFirst,    // [..., H, W, C] to [..., C, H, W]
    kCrop,             // Of [..., H, W] rows and columns from (top, left) on.
  };
  Kind kind = Kind::kScaleThenShift;
  DType dtype = DType::kFloat32;
  // One number for all elements, or one for each element of a row.
  std::vector<double> scale = {1};
  std::vector<double> loc = {0};
  double low = 0;
  double high = 0;
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// A map of the rows of one leaf: a row of the result depends on one row and on
// nothing else. RowwiseTransform makes a transform of it.
//
// Shapes: rows have any shape; they lie one after another in host memory.
// Thread-safety: immutable.
class RowMap {
 public:
  virtual ~RowMap() = default;

  // The leaf afterwards: dtype, shape and domain. The domain is that of
  // numbers: a NaN that stays is outside it. INVALID_ARGUMENT says what it got
  // and wants ("got bool[4], want float32 or float64"); the caller adds the
  // transform and the key.
  virtual absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const = 0;

  // From `count` rows of this dtype and shape at `from` to as many of the
  // leaf afterwards at `to`. MapSpec has passed a leaf of these. With an error
  // the rows at `to` are unspecified.
  virtual absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                               const std::byte* from, std::byte* to) const = 0;

  // The same with stores past the caches (row_kernels.h). False where the map
  // has no kernel for that; it has written nothing then.
  virtual bool StreamRows(DType /*dtype*/, const Shape& /*shape*/,
                          int64_t /*count*/, const std::byte* /*from*/,
                          std::byte* /*to*/) const {
    return false;
  }

  // Dtype and shape stay, and an element depends on the one at its place
  // alone: `to` may be `from`.
  virtual bool is_in_place() const { return false; }

  // The dtype alone says what becomes of an element, so that rows may be mapped
  // in pieces.
  virtual bool is_flat() const { return false; }

  // The same as data; empty where it is more than steps can say.
  virtual absl::Span<const RowStep> steps() const { return {}; }
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_MAP_H_
