// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_ARROW_ARROW_C_DATA_H_
#define RILL_DISTRIBUTED_ARROW_ARROW_C_DATA_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/tensordict/tensor_dict.h"

// Arrow's C data interface: arrow/c/abi.h, and every Arrow library has them.
struct ArrowArray;
struct ArrowSchema;

namespace rill {

// A TensorDict as the structs by which libraries of one process hand over a
// record batch, as Python's pyarrow does (RecordBatch._import_from_c). The
// batch is that of ToArrow and FromArrow, a struct array in C; what is shared
// and what is copied is as they say.
//
// Lifetimes: either side may end first. The memory lives until the importer has
// called `release` and the last tensor that shares it is gone.
//
// Thread-safety: thread-safe. `release` may be called by any thread.
// Cost: that of ToArrow or FromArrow, and O(columns).
//
// Example (ArrowCDataTest.Example runs it):
//   ArrowSchema schema;
//   ArrowArray array;
//   RILL_RETURN_IF_ERROR(ExportToC(steps, &schema, &array));
//   RILL_ASSIGN_OR_RETURN(TensorDict same, ImportFromC(&schema, &array));

// Fills both structs, whatever they held; neither is null. Errors as ToArrow's,
// and then both are released ones (`release` is null).
absl::Status ExportToC(const TensorDict& dict, ArrowSchema* schema,
                       ArrowArray* array, const ToArrowOptions& options = {});

// Takes both structs over, with an error too: they are released ones then. The
// importer must not write to what others gave it, so that leaves are read-only
// unless the options say otherwise.
//
// INVALID_ARGUMENT as FromArrow's, and of a struct that is released, null or
// not whole: counts below 0, children or a format that are missing. So of a
// type that Arrow does not know, or that is no struct. How long buffers are
// nobody can find out: the exporter is believed that they are as long as
// lengths and offsets say.
absl::StatusOr<TensorDict> ImportFromC(ArrowSchema* schema, ArrowArray* array,
                                       const FromArrowOptions& options = {});

}  // namespace rill

#endif  // RILL_DISTRIBUTED_ARROW_ARROW_C_DATA_H_
