// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/compressed/sealed_block.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "zstd.h"

namespace rill::storage_internal {
namespace {

absl::Status NoMemory(absl::string_view what) {
  return ResourceExhausted("CompressedStorage: memory: got none for ", what);
}

// Its memory is one per thread that reads.
ZSTD_DCtx* ThreadUnpacker() {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  thread_local std::unique_ptr<ZSTD_DCtx, Free> context;
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  return context.get();
}

}  // namespace

absl::StatusOr<std::byte*> ScratchBytes::Get(size_t size) {
  if (size > size_ || bytes_ == nullptr) {
    bytes_.reset();
    size_ = 0;
    bytes_.reset(new (std::nothrow) std::byte[std::max<size_t>(size, 1)]);
    if (bytes_ == nullptr) return NoMemory(absl::StrCat(size, " bytes"));
    size_ = size;
  }
  return bytes_.get();
}

absl::StatusOr<const std::byte*> SealedBlock::Open(
    size_t column, ScratchBytes* scratch) const {
  const Column& packed = columns_[column];
  const std::byte* const from = packed_.get() + packed.begin;
  if (packed.size == packed.bytes) return from;
  RILL_ASSIGN_OR_RETURN(std::byte* const bytes, scratch->Get(packed.bytes));
  ZSTD_DCtx* const unpacker = ThreadUnpacker();
  if (unpacker == nullptr) return NoMemory("unpacking");
  const size_t got =
      ZSTD_decompressDCtx(unpacker, bytes, packed.bytes, from, packed.size);
  if (got != packed.bytes) {
    return Internal("CompressedStorage: column ", column, " of a block: got ",
                    ZSTD_isError(got) ? ZSTD_getErrorName(got) : "another size",
                    ", want ", packed.bytes, " bytes");
  }
  return bytes;
}

int64_t SealedBlockOverhead(size_t num_columns) {
  // With the counts that a shared_ptr keeps beside it.
  return static_cast<int64_t>(sizeof(SealedBlock) + 2 * sizeof(void*) +
                              3 * sizeof(size_t) * num_columns);
}

int64_t SealedBlock::memory_bytes() const {
  return SealedBlockOverhead(columns_.size()) + packed_bytes_;
}

void BlockSealer::Free::operator()(void* context) const {
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context));
}

int BlockSealer::MinLevel() { return ZSTD_minCLevel(); }
int BlockSealer::MaxLevel() { return ZSTD_maxCLevel(); }

absl::StatusOr<BlockSealer> BlockSealer::Create(int level) {
  BlockSealer sealer(level);
  sealer.context_.reset(ZSTD_createCCtx());
  if (sealer.context_ == nullptr) return NoMemory("packing");
  return sealer;
}

absl::StatusOr<std::shared_ptr<const SealedBlock>> BlockSealer::Seal(
    absl::Span<const absl::string_view> columns, const SealedBlock* old) {
  // Packed into scratch memory of the largest possible size, then copied to as
  // many bytes as it took.
  size_t most = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    most += columns[i].data() == nullptr && old != nullptr
                ? old->columns_[i].size
                : ZSTD_compressBound(columns[i].size());
  }
  RILL_ASSIGN_OR_RETURN(std::byte* const packed, packed_.Get(most));
  auto block = std::make_shared<SealedBlock>();
  block->columns_.reserve(columns.size());
  size_t end = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    SealedBlock::Column column = {.begin = end, .bytes = columns[i].size()};
    std::byte* const to = packed + end;
    if (columns[i].data() == nullptr && old != nullptr) {
      column = old->columns_[i];
      column.begin = end;
      std::copy_n(old->packed_.get() + old->columns_[i].begin, column.size, to);
    } else if (column.bytes > 0) {
      column.size = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context_.get()),
                                      to, most - end, columns[i].data(),
                                      column.bytes, level_);
      if (ZSTD_isError(column.size) &&
          ZSTD_getErrorCode(column.size) != ZSTD_error_memory_allocation) {
        return Internal("CompressedStorage: column ", i, " of a block: got ",
                        ZSTD_getErrorName(column.size), ", want it packed");
      }
      if (ZSTD_isError(column.size)) return NoMemory("packing");
      // Equal sizes mark a column that is kept plain (Open).
      if (column.size >= column.bytes) {
        column.size = column.bytes;
        std::memcpy(to, columns[i].data(), column.bytes);
      }
    }
    end += column.size;
    block->open_bytes_ += static_cast<int64_t>(column.bytes);
    block->columns_.push_back(column);
  }
  RILL_RETURN_IF_ERROR(FaultPoint("host.allocate", "sealed block"));
  block->packed_.reset(new (std::nothrow)
                           std::byte[std::max<size_t>(end, size_t{1})]);
  if (block->packed_ == nullptr) return NoMemory(absl::StrCat(end, " bytes"));
  std::copy_n(packed, end, block->packed_.get());
  block->packed_bytes_ = static_cast<int64_t>(end);
  return std::shared_ptr<const SealedBlock>(std::move(block));
}

}  // namespace rill::storage_internal
