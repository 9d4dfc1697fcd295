// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_ARROW_ARROW_BATCH_H_
#define RILL_DISTRIBUTED_ARROW_ARROW_BATCH_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace arrow {
class RecordBatch;
}  // namespace arrow

namespace rill {

// A TensorDict as an Arrow record batch, and back. docs/formats/arrow.md says
// which entry becomes which column, and what a plain Arrow program sees of it.
//
// Bytes are shared: a column of a contiguous leaf is that leaf's memory, and a
// leaf of a column is that column's. Either keeps the memory alive when the
// other is gone. These are copied: leaves with gaps, bool leaves without
// dimensions beyond the batch shape, texts, and columns that Arrow holds at
// addresses which their dtype does not allow.
//
// Thread-safety: thread-safe.
// Cost: O(columns), and the copies.
//
// Example (ArrowBatchTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto batch, ToArrow(steps));
//   RILL_ASSIGN_OR_RETURN(TensorDict same, FromArrow(batch));

struct ToArrowOptions {
  // Batch shape and dimension names in the schema's metadata. Without them all
  // batches of one kind have one schema, however many rows there are.
  bool writes_batch_shape = true;
};

// INVALID_ARGUMENT names the key of a tensor in device memory, a lazy stack, a
// name or JSON text that is no UTF-8, or a column past Arrow's limits.
absl::StatusOr<std::shared_ptr<arrow::RecordBatch>> ToArrow(
    const TensorDict& dict, const ToArrowOptions& options = {});

struct FromArrowOptions {
  // In place of the one in the schema's metadata.
  std::optional<Shape> batch_shape = std::nullopt;
  // Leaves may be written, though Arrow holds their bytes as constant: for a
  // caller that alone has the batch.
  bool is_writable = false;
};

// Any record batch, of a hostile sender too. Its batch shape is that of the
// options, or of the metadata, or [rows].
//
// INVALID_ARGUMENT names the key and what is wrong: a type that is no tensor of
// a DType, null values, a name that is empty or comes twice. Or lengths,
// offsets or shapes do not fit.
absl::StatusOr<TensorDict> FromArrow(
    const std::shared_ptr<arrow::RecordBatch>& batch,
    const FromArrowOptions& options = {});

}  // namespace rill

#endif  // RILL_DISTRIBUTED_ARROW_ARROW_BATCH_H_
