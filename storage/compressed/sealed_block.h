// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_COMPRESSED_SEALED_BLOCK_H_
#define RILL_STORAGE_COMPRESSED_SEALED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::storage_internal {

// Bytes that are used again; what they held is lost when they grow.
// Thread-safety: thread-compatible.
class ScratchBytes {
 public:
  // At least `size` of them. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::byte*> Get(size_t size);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

// Columns of bytes, each compressed by itself with zstd; a column that does not
// get smaller is kept as it is.
// Thread-safety: immutable.
class SealedBlock {
 public:
  // Column `column` as it was sealed: its own bytes, or unpacked to `scratch`.
  // RESOURCE_EXHAUSTED.
  absl::StatusOr<const std::byte*> Open(size_t column,
                                        ScratchBytes* scratch) const;
  size_t column_bytes(size_t column) const { return columns_[column].bytes; }
  // Bytes of the columns before they were sealed, and of all that this takes.
  int64_t open_bytes() const { return open_bytes_; }
  int64_t memory_bytes() const;

 private:
  friend class BlockSealer;
  struct Column {
    size_t begin = 0;  // In packed_.
    size_t size = 0;   // As large as `bytes`: not compressed.
    size_t bytes = 0;
  };

  std::vector<Column> columns_;
  std::unique_ptr<std::byte[]> packed_;
  int64_t packed_bytes_ = 0;
  int64_t open_bytes_ = 0;
};

// The most that a block with so many columns takes beyond their bytes.
int64_t SealedBlockOverhead(size_t num_columns);

// Makes blocks.
// Thread-safety: thread-compatible.
class BlockSealer {
 public:
  // `level` in [MinLevel(), MaxLevel()], zstd's own. RESOURCE_EXHAUSTED.
  static absl::StatusOr<BlockSealer> Create(int level);
  static int MinLevel();
  static int MaxLevel();

  BlockSealer(BlockSealer&&) = default;
  BlockSealer& operator=(BlockSealer&&) = default;

  // The views are the bytes of the columns. One with null data is the column of
  // `old`, which has as many. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<const SealedBlock>> Seal(
      absl::Span<const absl::string_view> columns,
      const SealedBlock* old = nullptr);

 private:
  struct Free {
    void operator()(void* context) const;
  };

  explicit BlockSealer(int level) : level_(level) {}

  int level_;
  std::unique_ptr<void, Free> context_;
  ScratchBytes packed_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_COMPRESSED_SEALED_BLOCK_H_
