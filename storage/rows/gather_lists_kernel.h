// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_GATHER_LISTS_KERNEL_H_
#define RILL_STORAGE_ROWS_GATHER_LISTS_KERNEL_H_

#include <cstddef>
#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/device/row_column.h"

namespace rill::storage_internal {

// Gathers of several lists of rows in one launch, for host and devices: column
// c takes rows[c] of the table to its places. The threads of a column are those
// of blocks of its own.
struct GatherListsKernel {
  static constexpr const char* kName = "gather_lists";
  static constexpr int kThreads = 256;
  static constexpr int kMaxColumns = 32;
  static constexpr int64_t kMaxBlocks = 4096;  // Of a column.
  using Shared = NoState;
  using Local = NoState;

  struct Column {
    RowColumn place = {};
    const int64_t* rows = nullptr;
    int64_t num_rows = 0;
    int64_t first_block = 0;
    int64_t num_blocks = 0;
    int word_bytes = 1;
    // The threads that copy a row are a power of two, so that no thread
    // divides.
    int log_threads = 0;
  };
  Column columns[kMaxColumns] = {};
  int64_t num_columns = 0;
  int64_t table_rows = 0;

  // Adds a column, whose rows lie on the device; false: there is no room.
  bool Add(const RowColumn& place, const int64_t* rows, int64_t num_rows) {
    if (num_columns == kMaxColumns) return false;
    Column& column = columns[num_columns];
    column = {.place = place, .rows = rows, .num_rows = num_rows};
    if (num_columns > 0) {
      const Column& before = columns[num_columns - 1];
      column.first_block = before.first_block + before.num_blocks;
    }
    ++num_columns;
    // The widest word that divides all addresses and strides.
    const uint64_t all = reinterpret_cast<uint64_t>(place.table) |
                         reinterpret_cast<uint64_t>(place.batch) |
                         static_cast<uint64_t>(place.table_stride) |
                         static_cast<uint64_t>(place.batch_stride) |
                         static_cast<uint64_t>(place.width);
    column.word_bytes = 16;
    while (all % static_cast<uint64_t>(column.word_bytes) != 0) {
      column.word_bytes /= 2;
    }
    constexpr int kMaxLogThreads = 8;
    while (column.log_threads < kMaxLogThreads &&
           (int64_t{1} << column.log_threads) <
               place.width / column.word_bytes) {
      ++column.log_threads;
    }
    const int64_t blocks =
        ((num_rows << column.log_threads) + kThreads - 1) / kThreads;
    column.num_blocks = blocks < kMaxBlocks ? blocks : kMaxBlocks;
    return true;
  }
  KernelGrid grid() const {
    const Column& last = columns[num_columns - 1];
    return {last.first_block + last.num_blocks, kThreads};
  }

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    int64_t c = 0;
    while (thread.block - columns[c].first_block >= columns[c].num_blocks) ++c;
    const Column& column = columns[c];
    const int64_t at =
        (thread.block - column.first_block) * thread.num_threads +
        thread.thread;
    switch (column.word_bytes) {
      case 16:
        return Copy<Pair>(column, at);
      case 8:
        return Copy<uint64_t>(column, at);
      case 4:
        return Copy<uint32_t>(column, at);
      case 2:
        return Copy<uint16_t>(column, at);
      default:
        return Copy<uint8_t>(column, at);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int64_t c = 0; c < num_columns; ++c) {
      Column& column = columns[c];
      RowColumn& place = column.place;
      visit(place.table, (table_rows - 1) * place.table_stride + place.width);
      visit(place.batch,
            (column.num_rows - 1) * place.batch_stride + place.width);
      visit(column.rows,
            column.num_rows * static_cast<int64_t>(sizeof(int64_t)));
    }
  }

 private:
  struct Pair {
    uint64_t low;
    uint64_t high;
  };
  // Bytes of any type.
  template <typename T>
  struct alignas(sizeof(T)) [[gnu::may_alias]] Word {
    T value;
  };

  // Neighbouring threads copy neighbouring words of a row, and go on by their
  // number; then the same threads take a row further on.
  template <typename T>
  static constexpr void Copy(const Column& column, int64_t thread) {
    const int64_t words = column.place.width / static_cast<int64_t>(sizeof(T));
    const int64_t threads = column.num_blocks * kThreads;
    const int64_t row_threads = int64_t{1} << column.log_threads;
    for (int64_t i = thread >> column.log_threads; i < column.num_rows;
         i += threads >> column.log_threads) {
      const Word<T>* const from = static_cast<const Word<T>*>(
          static_cast<const void*>(TableRow(column.place, column.rows[i])));
      Word<T>* const to = static_cast<Word<T>*>(
          static_cast<void*>(BatchPlace(column.place, i)));
      for (int64_t word = thread & (row_threads - 1); word < words;
           word += row_threads) {
        to[word] = from[word];
      }
    }
  }
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_GATHER_LISTS_KERNEL_H_
