// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_
#define RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_

#include <cstdint>

#include "rill/device/row_column.h"

namespace rill::cuda_internal {

// Launches of the row copy kernels, in a plain C++ header between nvcc and the
// rest. The device can reach the columns. All is enqueued on `stream` (a
// cudaStream_t). Each returns a cudaError_t of the launch; nothing blocks.
//
// A thread copies words of one row: the widest (16, 8, 4, 2 or 1 bytes) that
// addresses, strides and width of the column allow. Neighbouring threads copy
// neighbouring words.

// Up to so many numbers are read on the host and travel with the launch, as
// parameters of the kernel; more lie in memory that the device can reach.
inline constexpr int64_t kFewNumbers = 512;
struct NumberList {
  const int64_t* numbers = nullptr;
  int64_t count = 0;
};

// Batch place i <- table row rows[i].
int LaunchGatherRows(const RowColumn* columns, int64_t num_columns,
                     NumberList rows, void* stream);

// Table row rows[i] <- batch place places[i], or i where `places` has none. No
// row may be named twice: threads have no order.
int LaunchScatterRows(const RowColumn* columns, int64_t num_columns,
                      NumberList rows, NumberList places, void* stream);

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_ROW_COPY_KERNELS_H_
