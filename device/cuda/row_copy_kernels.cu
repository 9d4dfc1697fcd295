// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

#include "rill/device/cuda/row_copy_kernels.h"

namespace rill::cuda_internal {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;  // Enough for any GPU; threads loop.
constexpr int kMaxColumns = 64;       // Of one launch.
constexpr int kMaxLogThreads = 9;     // 512 threads for a row, in two blocks.

// Columns go as a parameter of the kernel, which saves a copy to the device.
struct Column {
  RowColumn place;
  int word_bytes;
  // The threads that copy a row are a power of two, so that no thread divides.
  int log_threads;
};
struct Columns {
  Column column[kMaxColumns];
};

// Neighbouring threads copy neighbouring words of a row, and go on by their
// number; then the same threads take a row further on.
template <typename Word>
__device__ void CopyWords(const Column& column, const int64_t* rows,
                          const int64_t* places, int64_t num_rows,
                          bool gather) {
  const RowColumn& place = column.place;
  const int64_t words = place.width / static_cast<int64_t>(sizeof(Word));
  const int64_t thread =
      static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t row_threads = int64_t{1} << column.log_threads;
  for (int64_t i = thread >> column.log_threads; i < num_rows;
       i += threads >> column.log_threads) {
    auto* table = reinterpret_cast<Word*>(TableRow(place, rows[i]));
    auto* batch = reinterpret_cast<Word*>(
        BatchPlace(place, places == nullptr ? i : places[i]));
    Word* __restrict__ const to = gather ? batch : table;
    const Word* __restrict__ const from = gather ? table : batch;
    // The loads of four words are under way together.
#pragma unroll 4
    for (int64_t word = thread & (row_threads - 1); word < words;
         word += row_threads) {
      to[word] = from[word];
    }
  }
}

__device__ void CopyColumn(const Column& column, const int64_t* rows,
                           const int64_t* places, int64_t num_rows,
                           bool gather) {
  switch (column.word_bytes) {
    case 16:
      return CopyWords<uint4>(column, rows, places, num_rows, gather);
    case 8:
      return CopyWords<uint64_t>(column, rows, places, num_rows, gather);
    case 4:
      return CopyWords<uint32_t>(column, rows, places, num_rows, gather);
    case 2:
      return CopyWords<uint16_t>(column, rows, places, num_rows, gather);
    default:
      return CopyWords<uint8_t>(column, rows, places, num_rows, gather);
  }
}

// One column for each blockIdx.y.
__global__ void CopyRows(const __grid_constant__ Columns columns,
                         const int64_t* rows, const int64_t* places,
                         int64_t num_rows, bool gather) {
  CopyColumn(columns.column[blockIdx.y], rows, places, num_rows, gather);
}

// Numbers that travel with the launch: the rows and, as a second list, places.
// A launch costs by the size of its parameters.
template <int kLists>
struct FewNumbers {
  int64_t numbers[kLists][kFewNumbers];
};

template <int kLists>
__global__ void CopyFewRows(const __grid_constant__ Columns columns,
                            const __grid_constant__ FewNumbers<kLists> few,
                            int64_t num_rows, bool gather) {
  CopyColumn(columns.column[blockIdx.y], few.numbers[0],
             kLists == 2 ? few.numbers[kLists - 1] : nullptr, num_rows, gather);
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

// So many threads, as a power of two, copy a row of `words`.
int LogThreads(int64_t words) {
  int log = 0;
  while (log < kMaxLogThreads && (int64_t{1} << log) < words) ++log;
  return log;
}

template <int kLists>
void LaunchFew(dim3 grid, cudaStream_t stream, const Columns& columns,
               const NumberList (&lists)[kLists], bool gather) {
  FewNumbers<kLists> few;
  for (int i = 0; i < kLists; ++i) {
    memcpy(few.numbers[i], lists[i].numbers, lists[i].count * sizeof(int64_t));
  }
  CopyFewRows<<<grid, kThreads, 0, stream>>>(columns, few, lists[0].count,
                                             gather);
}

int Launch(const RowColumn* columns, int64_t num_columns, NumberList rows,
           NumberList places, bool gather, cudaStream_t stream) {
  const int64_t num_rows = rows.count;
  for (int64_t first = 0; first < num_columns; first += kMaxColumns) {
    const int64_t count =
        num_columns - first < kMaxColumns ? num_columns - first : kMaxColumns;
    Columns group = {};
    // The grid is as wide as the column with the most threads needs. Threads
    // that another column has no rows for end at once.
    int64_t most_threads = 1;
    for (int64_t c = 0; c < count; ++c) {
      const RowColumn& column = columns[first + c];
      const int word_bytes = WordBytes(column);
      const int log_threads = LogThreads(column.width / word_bytes);
      group.column[c] = {column, word_bytes, log_threads};
      const int64_t threads = num_rows << log_threads;
      if (threads > most_threads) most_threads = threads;
    }
    // In pairs, which have whole groups of threads.
    const int64_t blocks =
        (most_threads + 2 * kThreads - 1) / (2 * kThreads) * 2;
    const dim3 grid(
        static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks),
        static_cast<unsigned>(count));
    if (num_rows > kFewNumbers) {
      CopyRows<<<grid, kThreads, 0, stream>>>(group, rows.numbers,
                                              places.numbers, num_rows, gather);
    } else if (places.count == 0) {
      LaunchFew(grid, stream, group, {rows}, gather);
    } else {
      LaunchFew(grid, stream, group, {rows, places}, gather);
    }
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

}  // namespace

int LaunchGatherRows(const RowColumn* columns, int64_t num_columns,
                     NumberList rows, void* stream) {
  return Launch(columns, num_columns, rows, {}, true,
                static_cast<cudaStream_t>(stream));
}

int LaunchScatterRows(const RowColumn* columns, int64_t num_columns,
                      NumberList rows, NumberList places, void* stream) {
  return Launch(columns, num_columns, rows, places, false,
                static_cast<cudaStream_t>(stream));
}

}  // namespace rill::cuda_internal
