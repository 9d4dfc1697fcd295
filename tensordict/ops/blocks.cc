// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/half.h"

namespace rill::ops_internal {
namespace {

using tensordict_internal::AsDouble;
using tensordict_internal::FromDouble;

template <typename T>
void Decode(const std::byte* from, int64_t stride, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i, from += stride) {
    to[i] =
        static_cast<float>(AsDouble(tensordict_internal::LoadElement<T>(from)));
  }
}

template <typename T>
void Encode(const float* from, int64_t n, std::byte* to, int64_t stride) {
  for (int64_t i = 0; i < n; ++i, to += stride) {
    const T value = FromDouble<T>(from[i]);
    std::memcpy(to, &value, sizeof(T));
  }
}

// `n` items of `kItem` bytes between places with strides.
template <size_t kItem>
void CopyItems(std::byte* to, int64_t to_stride, const std::byte* from,
               int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i, to += to_stride, from += from_stride) {
    std::memcpy(to, from, kItem);
  }
}

void CopyItems(int64_t item, std::byte* to, int64_t to_stride,
               const std::byte* from, int64_t from_stride, int64_t n) {
  if (to_stride == item && from_stride == item) {
    std::memcpy(to, from, static_cast<size_t>(n * item));
    return;
  }
  switch (item) {
    case 1:
      return CopyItems<1>(to, to_stride, from, from_stride, n);
    case 2:
      return CopyItems<2>(to, to_stride, from, from_stride, n);
    case 4:
      return CopyItems<4>(to, to_stride, from, from_stride, n);
    default:
      return CopyItems<8>(to, to_stride, from, from_stride, n);
  }
}

}  // namespace

void BlockReader::Fill(int64_t n) {
  const int64_t item = DTypeSize(ComputeDType(dtype_));
  std::byte* to = buffer_;
  cursor_.Advance(n, [&](const std::byte* from, int64_t stride, int64_t count) {
    if (dtype_ == DType::kFloat16) {
      Decode<Float16>(from, stride, count, reinterpret_cast<float*>(to));
    } else if (dtype_ == DType::kBFloat16) {
      Decode<BFloat16>(from, stride, count, reinterpret_cast<float*>(to));
    } else {
      CopyItems(item, to, item, from, stride, count);
    }
    to += count * item;
  });
}

void BlockReader::Repeat(int64_t n) {
  const auto item = static_cast<size_t>(DTypeSize(ComputeDType(dtype_)));
  const size_t bytes = static_cast<size_t>(n) * item;
  for (size_t done = item; done < bytes; done *= 2) {
    std::memcpy(buffer_ + done, buffer_, std::min(done, bytes - done));
  }
}

void BlockWriter::Commit(int64_t n) {
  if (is_direct()) {
    direct_ += n * DTypeSize(dtype_);
    return;
  }
  const int64_t item = DTypeSize(ComputeDType(dtype_));
  const std::byte* from = buffer_;
  cursor_.Advance(n, [&](std::byte* to, int64_t stride, int64_t count) {
    if (dtype_ == DType::kFloat16) {
      Encode<Float16>(reinterpret_cast<const float*>(from), count, to, stride);
    } else if (dtype_ == DType::kBFloat16) {
      Encode<BFloat16>(reinterpret_cast<const float*>(from), count, to, stride);
    } else {
      CopyItems(item, to, stride, from, item, count);
    }
    from += count * item;
  });
}

}  // namespace rill::ops_internal
