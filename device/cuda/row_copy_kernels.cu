// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstdint>

#include "rill/device/cuda/row_copy_kernels.h"

namespace rill::cuda_internal {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;  // Enough for any GPU; threads loop.
constexpr int kMaxColumns = 64;       // Of one launch: its parameters' space.

// Columns go as a parameter of the kernel, which saves a copy to the device. 64
// columns of 56 bytes stay below 4 KiB, which every driver takes as parameters.
struct Column {
  RowColumn place;
  int word_bytes;
};
struct Columns {
  Column column[kMaxColumns];
};

// Each thread copies a word and goes on by the whole grid, so neighbouring
// threads have neighbouring words of a row. `num_rows * words` is 64 bits wide:
// tables may have more than 2^31 words.
template <typename Word>
__device__ void CopyWords(const RowColumn& column, const int64_t* rows,
                          const int64_t* places, int64_t num_rows,
                          bool gather) {
  const int64_t words = column.width / static_cast<int64_t>(sizeof(Word));
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       n < num_rows * words; n += step) {
    const int64_t i = n / words;
    const int64_t at = (n - i * words) * static_cast<int64_t>(sizeof(Word));
    auto* table = reinterpret_cast<Word*>(TableRow(column, rows[i]) + at);
    auto* batch = reinterpret_cast<Word*>(
        BatchPlace(column, places == nullptr ? i : places[i]) + at);
    if (gather) {
      *batch = *table;
    } else {
      *table = *batch;
    }
  }
}

// One column for each blockIdx.y.
__global__ void CopyRows(const __grid_constant__ Columns columns,
                         const int64_t* rows, const int64_t* places,
                         int64_t num_rows, bool gather) {
  const Column& column = columns.column[blockIdx.y];
  switch (column.word_bytes) {
    case 16:
      return CopyWords<uint4>(column.place, rows, places, num_rows, gather);
    case 8:
      return CopyWords<uint64_t>(column.place, rows, places, num_rows, gather);
    case 4:
      return CopyWords<uint32_t>(column.place, rows, places, num_rows, gather);
    case 2:
      return CopyWords<uint16_t>(column.place, rows, places, num_rows, gather);
    default:
      return CopyWords<uint8_t>(column.place, rows, places, num_rows, gather);
  }
}

// The widest word that divides all addresses and strides: the lowest bit that
// is set in any of them says which.
int WordBytes(const RowColumn& column) {
  const uint64_t all = reinterpret_cast<uint64_t>(column.table) |
                       reinterpret_cast<uint64_t>(column.batch) |
                       static_cast<uint64_t>(column.table_stride) |
                       static_cast<uint64_t>(column.batch_stride) |
                       static_cast<uint64_t>(column.width);
  int bytes = 16;
  while (all % bytes != 0) bytes /= 2;
  return bytes;
}

int Launch(const RowColumn* columns, int64_t num_columns, const int64_t* rows,
           const int64_t* places, int64_t num_rows, bool gather, void* stream) {
  for (int64_t first = 0; first < num_columns; first += kMaxColumns) {
    const int64_t count =
        num_columns - first < kMaxColumns ? num_columns - first : kMaxColumns;
    Columns group = {};
    // The grid is as wide as the column with the most words needs. Threads that
    // a narrower column has no words for end at once.
    int64_t most_words = 1;
    for (int64_t c = 0; c < count; ++c) {
      const RowColumn& column = columns[first + c];
      const int word_bytes = WordBytes(column);
      group.column[c] = {column, word_bytes};
      const int64_t words = num_rows * (column.width / word_bytes);
      if (words > most_words) most_words = words;
    }
    const int64_t blocks = (most_words + kThreads - 1) / kThreads;
    const dim3 grid(
        static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks),
        static_cast<unsigned>(count));
    CopyRows<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        group, rows, places, num_rows, gather);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

}  // namespace

int LaunchGatherRows(const RowColumn* columns, int64_t num_columns,
                     const int64_t* rows, int64_t num_rows, void* stream) {
  return Launch(columns, num_columns, rows, nullptr, num_rows, true, stream);
}

int LaunchScatterRows(const RowColumn* columns, int64_t num_columns,
                      const int64_t* rows, const int64_t* places,
                      int64_t num_rows, void* stream) {
  return Launch(columns, num_columns, rows, places, num_rows, false, stream);
}

}  // namespace rill::cuda_internal
