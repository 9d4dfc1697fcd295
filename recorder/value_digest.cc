// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/value_digest.h"

#include <algorithm>
#include <array>

#include "absl/crc/crc32c.h"
#include "absl/status/statusor.h"
#include "rill/recorder/fast_crc.h"
#include "rill/tensors/tensor.h"

namespace rill::recorder_internal {
namespace {

absl::crc32c_t Extend(absl::crc32c_t crc, const void* data, int64_t bytes) {
  return ExtendCrc(crc,
                   absl::string_view(static_cast<const char*>(data), bytes));
}

// 0 says that there is nothing.
uint32_t NotZero(absl::crc32c_t crc) {
  return std::max(static_cast<uint32_t>(crc), uint32_t{1});
}

absl::crc32c_t ExtendByElements(absl::crc32c_t crc, const Tensor& tensor) {
  if (!tensor.device().is_cpu()) return crc;
  if (tensor.is_contiguous()) {
    return Extend(crc, tensor.raw_data(), tensor.size_bytes());
  }
  const absl::StatusOr<Tensor> copy = tensor.Contiguous();
  // Without memory for a copy the elements do not count, as if on a device.
  return copy.ok() ? Extend(crc, copy->raw_data(), copy->size_bytes()) : crc;
}

absl::crc32c_t ExtendByPieces(absl::crc32c_t crc,
                              absl::Span<const absl::string_view> pieces) {
  for (const absl::string_view piece : pieces) {
    crc = ExtendCrc(crc, piece);
  }
  return crc;
}

}  // namespace

uint32_t DigestOf(const TensorDict& values,
                  absl::Span<const absl::string_view> pieces) {
  absl::crc32c_t crc{0};
  values.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Shape& shape = leaf.shape();
    std::array<int64_t, 3 + Shape::kMaxRank> head = {
        static_cast<int64_t>(key.size()), static_cast<int64_t>(leaf.dtype()),
        shape.rank()};
    for (int64_t i = 0; i < shape.rank(); ++i) head[3 + i] = shape[i];
    const auto bytes = (3 + shape.rank()) * int64_t{sizeof(head[0])};
    crc =
        ExtendByElements(ExtendCrc(Extend(crc, head.data(), bytes), key), leaf);
  });
  return NotZero(ExtendByPieces(crc, pieces));
}

uint32_t DigestOf(absl::Span<const absl::string_view> pieces) {
  if (pieces.empty()) return 0;
  return NotZero(ExtendByPieces(absl::crc32c_t{0}, pieces));
}

}  // namespace rill::recorder_internal
