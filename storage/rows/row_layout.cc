// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/row_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t RoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// The largest sum that RoundUp may still be given.
constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max() - kLineBytes;

absl::Status TooLarge(const TensorDictSpec& spec, const Lanes& lanes) {
  return InvalidArgument("RowLayout::Create: bytes of ", lanes.num_slots(),
                         " rows of ", spec.ToString(), ": want at most ",
                         kMaxBytes, "; lower the capacity");
}

bool AddWithin(int64_t bytes, int64_t* sum) {
  return !__builtin_add_overflow(*sum, bytes, sum) && *sum <= kMaxBytes;
}

// -1 where it does not fit.
int64_t LeafBytes(const LeafSpec& leaf) {
  int64_t bytes = DTypeSize(leaf.dtype);
  for (const int64_t size : leaf.shape.sizes()) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

int64_t AlignmentOf(DType dtype) {
  return std::min<int64_t>(DTypeSize(dtype), 8);
}

// How far records of `bytes` are apart.
int64_t RecordStride(int64_t bytes, int64_t alignment) {
  if (bytes == 0) return 0;
  if (bytes <= kLineBytes) {
    int64_t power = 1;
    while (power < bytes) power *= 2;
    if (power * 2 <= bytes * 3) return std::max(power, alignment);
  } else if (const int64_t lines = RoundUp(bytes, kLineBytes);
             (lines - bytes) * 8 <= bytes) {
    return lines;
  }
  return RoundUp(bytes, alignment);
}

}  // namespace

int64_t RowBytes(const TensorDictSpec& spec) {
  int64_t bytes = 0;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    bytes += leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
  }
  return bytes;
}

absl::StatusOr<RowLayout> RowLayout::Create(
    TensorDictSpec spec, const Lanes& lanes, StorageLayout layout,
    StorageOrder order, int64_t column_alignment, std::vector<NextPair> pairs) {
  if (!spec.non_tensors().empty()) {
    return InvalidArgument(
        "RowLayout::Create: spec: got \"", spec.non_tensors()[0].key,
        "\", which is not a tensor, want tensors only; erase it");
  }
  RowLayout result;
  result.lanes_ = lanes;
  result.order_ = order;
  result.row_is_slot_ = order == StorageOrder::kLaneMajor || lanes.count == 1;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    // Rows have a dimension before the leaf's own.
    if (leaf.spec.shape.rank() >= Shape::kMaxRank) {
      return InvalidArgument("RowLayout::Create: rank of leaf \"", leaf.key,
                             "\": got ", leaf.spec.shape.rank(),
                             ", want at most ", Shape::kMaxRank - 1);
    }
    const int64_t width = LeafBytes(leaf.spec);
    if (width < 0 || !AddWithin(width, &result.row_bytes_)) {
      return TooLarge(spec, lanes);
    }
    result.leaf_bytes_.push_back(width);
    result.fields_.push_back({.width = width});
  }
  // A leaf that shares its bytes keeps its number in the spec; width 0 leaves
  // it out of records, columns and copies.
  result.stored_row_bytes_ = result.row_bytes_;
  for (const NextPair& pair : pairs) {
    result.stored_row_bytes_ -= result.fields_[pair.next].width;
    result.fields_[pair.next].width = 0;
  }
  result.next_pairs_ = std::move(pairs);
  result.spec_ = std::move(spec);
  result.layout_ = layout;
  if (layout == StorageLayout::kAuto) {
    result.layout_ = result.stored_row_bytes_ <= kWidestRecordBytes
                         ? StorageLayout::kRows
                         : StorageLayout::kColumns;
  }
  RILL_RETURN_IF_ERROR(result.layout_ == StorageLayout::kRows
                           ? result.PlaceRecords()
                           : result.PlaceColumns(column_alignment));
  return result;
}

absl::Status RowLayout::PlaceRecords() {
  const auto& leaves = spec_.leaves();
  // Widths are multiples of their alignment. In descending order each field so
  // ends where the next may begin, without padding. Stable, as the format fixes
  // the offsets of leaves of one alignment (docs/formats/storage_directory.md).
  std::vector<size_t> by_alignment(leaves.size());
  std::iota(by_alignment.begin(), by_alignment.end(), size_t{0});
  std::stable_sort(by_alignment.begin(), by_alignment.end(),
                   [&](size_t a, size_t b) {
                     return AlignmentOf(leaves[a].spec.dtype) >
                            AlignmentOf(leaves[b].spec.dtype);
                   });
  int64_t bytes = 0;
  int64_t alignment = 1;
  for (const size_t leaf : by_alignment) {
    alignment = std::max(alignment, AlignmentOf(leaves[leaf].spec.dtype));
    fields_[leaf].offset = bytes;
    bytes += fields_[leaf].width;
  }
  const int64_t stride = RecordStride(bytes, alignment);
  for (RowField& field : fields_) field.stride = stride;
  if (__builtin_mul_overflow(stride, lanes_.num_slots(), &size_bytes_) ||
      size_bytes_ > kMaxBytes) {
    return TooLarge(spec_, lanes_);
  }
  return absl::OkStatus();
}

absl::Status RowLayout::PlaceColumns(int64_t alignment) {
  int64_t end = 0;
  for (RowField& field : fields_) {
    if (end > std::numeric_limits<int64_t>::max() - alignment) {
      return TooLarge(spec_, lanes_);
    }
    field.offset = RoundUp(end, alignment);
    field.stride = field.width;
    int64_t bytes;
    end = field.offset;
    if (__builtin_mul_overflow(field.width, lanes_.num_slots(), &bytes) ||
        !AddWithin(bytes, &end)) {
      return TooLarge(spec_, lanes_);
    }
  }
  size_bytes_ = end;
  return absl::OkStatus();
}

void RowLayout::RowsOf(absl::Span<const Slot> slots, int64_t* rows) const {
  if (row_is_slot_) {
    std::copy(slots.begin(), slots.end(), rows);
    return;
  }
  if (lanes_.num_slots() <= std::numeric_limits<uint32_t>::max()) {
    // Divisions of 32 bits take a third of the time.
    const uint32_t capacity = static_cast<uint32_t>(lanes_.capacity);
    const auto row_of = [&](Slot of) {
      const uint32_t slot = static_cast<uint32_t>(of);
      const uint32_t lane = slot / capacity;
      return int64_t{slot - lane * capacity} * lanes_.count + lane;
    };
    // A write of a step names one position of lane after lane.
    constexpr size_t kAtOnce = 8;
    size_t i = 0;
    while (i < slots.size()) {
      const Slot first = slots[i];
      const int64_t row = row_of(first);
      rows[i] = row;
      int64_t k = 1;
      for (++i; i + kAtOnce <= slots.size(); i += kAtOnce, k += kAtOnce) {
        int64_t any = 0;
        for (size_t j = 0; j < kAtOnce; ++j) {
          const int64_t lanes = k + static_cast<int64_t>(j);
          any |= slots[i + j] ^ (first + lanes * capacity);
          rows[i + j] = row + lanes;
        }
        if (any != 0) break;
      }
      for (; i < slots.size() && slots[i] == first + k * capacity; ++i, ++k) {
        rows[i] = row + k;
      }
    }
    return;
  }
  for (size_t i = 0; i < slots.size(); ++i) rows[i] = RowOf(slots[i]);
}

}  // namespace rill::storage_internal
