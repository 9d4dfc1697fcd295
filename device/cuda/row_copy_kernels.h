// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_
#define RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_

#include <cstdint>

#include "rill/device/row_column.h"

namespace rill::cuda_internal {

// Launches of the row copy kernels, in a plain C++ header between nvcc and the
// rest. `rows` (and `places`) hold `num_rows` numbers in memory that the device
// can reach, as do the columns. All is enqueued on `stream` (a cudaStream_t).
// Each returns a cudaError_t of the launch; nothing blocks.
//
// A thread copies one word of one row: the widest (16, 8, 4, 2 or 1 bytes) that
// addresses, strides and width of the column allow. So neighbouring threads
// write neighbouring addresses of the batch.

// Batch place i <- table row rows[i].
int LaunchGatherRows(const RowColumn* columns, int64_t num_columns,
                     const int64_t* rows, int64_t num_rows, void* stream);

// Table row rows[i] <- batch place places[i], or i where `places` is null. No
// row may be named twice: threads have no order.
int LaunchScatterRows(const RowColumn* columns, int64_t num_columns,
                      const int64_t* rows, const int64_t* places,
                      int64_t num_rows, void* stream);

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_
