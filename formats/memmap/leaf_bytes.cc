// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/leaf_bytes.h"

#include <algorithm>

#include "rill/base/status_macros.h"

namespace rill::formats_internal {
namespace {

constexpr int64_t kMaxCopyBytes = int64_t{8} << 20;

// Splits along the first dimension until a part is contiguous, or small enough
// to be copied: at most kMaxCopyBytes are in memory twice. A part of several
// rows is small enough. One row alone has a dimension less, so the recursion
// ends.
absl::Status HostPieces(
    const Tensor& tensor,
    absl::FunctionRef<absl::Status(absl::string_view)> sink) {
  const int64_t bytes = tensor.size_bytes();
  if (bytes == 0) return absl::OkStatus();
  if (tensor.is_contiguous()) {
    return sink(absl::string_view(
        reinterpret_cast<const char*>(tensor.raw_data()), bytes));
  }
  if (bytes <= kMaxCopyBytes) {
    RILL_ASSIGN_OR_RETURN(const Tensor copy, tensor.Clone());
    return HostPieces(copy, sink);
  }
  const int64_t rows = tensor.shape().sizes()[0];
  const int64_t row_bytes = bytes / rows;
  const int64_t step = std::max<int64_t>(1, kMaxCopyBytes / row_bytes);
  for (int64_t row = 0; row < rows; row += step) {
    auto part = row_bytes > kMaxCopyBytes
                    ? tensor.Index(row)
                    : tensor.Slice(0, row, std::min(row + step, rows));
    RILL_RETURN_IF_ERROR(part.status());
    RILL_RETURN_IF_ERROR(HostPieces(*part, sink));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachPiece(
    const Tensor& tensor,
    absl::FunctionRef<absl::Status(absl::string_view)> sink) {
  RILL_ASSIGN_OR_RETURN(const Tensor host, tensor.To(Device::Cpu()));
  return HostPieces(host, sink);
}

absl::StatusOr<int64_t> LeafBytes(absl::string_view where, DType dtype,
                                  const Shape& shape) {
  int64_t bytes = DTypeSize(dtype);
  for (const int64_t size : shape.sizes()) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return InvalidArgument(where, ": bytes of ", DTypeName(dtype),
                             shape.ToString(), " do not fit in int64");
    }
  }
  return bytes;
}

}  // namespace rill::formats_internal
