// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_MAP_H_
#define RILL_TRANSFORMS_ROWS_ROW_MAP_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/rows/row_step.h"  // IWYU pragma: export

namespace rill {

class DeviceRows;

// A map of the rows of one leaf: a row of the result depends on one row and on
// nothing else. RowwiseTransform makes a transform of it.
//
// Shapes: rows have any shape; they lie one after another in host memory, but
//   for MapOnDevice.
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

  // Does the same with rows on a device (device_rows.h). MapSpec has passed a
  // leaf of their dtype and shape.
  virtual absl::Status MapOnDevice(DeviceRows* rows) const;
  // MapOnDevice does that. Both as steps() unless a map says otherwise.
  virtual bool maps_on_device() const { return !steps().empty(); }
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_MAP_H_
