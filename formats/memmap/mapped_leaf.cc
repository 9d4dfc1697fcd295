// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/mapped_leaf.h"

#include <cstring>

#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"

namespace rill::formats_internal {

absl::StatusOr<Tensor> MappedLeaf(absl::string_view where,
                                  const std::shared_ptr<MappedFile>& file,
                                  int64_t offset, DType dtype,
                                  const Shape& shape,
                                  LoadMemmapOptions::Mode mode) {
  using Mode = LoadMemmapOptions::Mode;
  if (shape.num_elements() == 0) return Tensor::Empty(dtype, shape);
  const int64_t bytes = shape.num_elements() * DTypeSize(dtype);
  // Relative to the file, whose mapping begins at a page.
  const bool is_aligned = offset % DTypeSize(dtype) == 0;
  if (!is_aligned && mode == Mode::kMapShared) {
    return InvalidArgument(where, ": offset: got ", offset,
                           ", want a multiple of ", DTypeSize(dtype),
                           " to map it writable; load it read-only and save it "
                           "again");
  }
  if (!is_aligned || mode == Mode::kCopy) {
    RILL_ASSIGN_OR_RETURN(Tensor copy, Tensor::Empty(dtype, shape));
    std::memcpy(copy.raw_data(), file->data() + offset, bytes);
    return copy;
  }
  return Tensor::View(
      Buffer::Wrap(file->data() + offset, bytes, Device::Cpu(),
                   MemoryKind::kMappedFile, file, file->is_writable()),
      dtype, shape, /*offset_bytes=*/0);
}

}  // namespace rill::formats_internal
