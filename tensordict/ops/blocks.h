// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_BLOCKS_H_
#define RILL_TENSORDICT_OPS_BLOCKS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

// Tensors as a stream of contiguous blocks, for the .cc files of this package:
// strided and 16-bit elements pass through a buffer, all others are where they
// are.
namespace rill::ops_internal {

// The elements that pass through a buffer at once.
inline constexpr int64_t kBlock = 1024;

// Half and bfloat16 are computed as float32, all others as what they are.
inline DType ComputeDType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32
                                                               : dtype;
}

// Walks the elements of a host tensor in row-major order, a run along the last
// dimension at a time.
class Cursor {
 public:
  explicit Cursor(const Tensor& tensor)
      : at_(tensor.raw_data()), shape_(tensor.shape()) {
    for (int d = 0; d < shape_.rank(); ++d) {
      // The stride of a dimension of size 1 says nothing, and may be absurd.
      if (shape_[d] > 1) strides_[d] = tensor.strides_bytes()[d];
    }
    if (shape_.rank() == 0) shape_ = {1};
  }
  // fn(first, stride_bytes, count) for the next `n` elements, of which there
  // are as many.
  template <typename Fn>
  void Advance(int64_t n, Fn&& fn) {
    const int last = shape_.rank() - 1;
    while (n > 0) {
      const int64_t count = std::min(n, shape_[last] - place_[last]);
      fn(at_, strides_[last], count);
      n -= count;
      place_[last] += count;
      at_ += count * strides_[last];
      for (int d = last; d > 0 && place_[d] == shape_[d]; --d) {
        at_ += strides_[d - 1] - shape_[d] * strides_[d];
        place_[d] = 0;
        ++place_[d - 1];
      }
    }
  }

 private:
  std::byte* at_;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_ = {};
  std::array<int64_t, Shape::kMaxRank> place_ = {};
};

// Blocks of a tensor as elements of ComputeDType.
class BlockReader {
 public:
  explicit BlockReader(const Tensor& tensor)
      : dtype_(tensor.dtype()),
        cursor_(tensor),
        direct_(tensor.is_contiguous() && ComputeDType(dtype_) == dtype_
                    ? tensor.raw_data()
                    : nullptr) {
    repeats_ = direct_ == nullptr || tensor.num_elements() == 1;
    for (int d = 0; d < tensor.rank(); ++d) {
      repeats_ = repeats_ &&
                 (tensor.shape()[d] == 1 || tensor.strides_bytes()[d] == 0);
    }
    if (repeats_) direct_ = nullptr;
    if (repeats_ && tensor.num_elements() > 0) {
      Fill(1);
      Repeat(std::min(kBlock, tensor.num_elements()));
    }
  }
  bool is_direct() const { return direct_ != nullptr; }
  // The next `n` elements; at most kBlock unless is_direct().
  const void* Next(int64_t n) {
    if (is_direct()) {
      const void* block = direct_;
      direct_ += n * DTypeSize(dtype_);
      return block;
    }
    if (!repeats_) Fill(n);
    return buffer_;
  }

 private:
  void Fill(int64_t n);
  void Repeat(int64_t n);  // The first element of the buffer.

  DType dtype_;
  Cursor cursor_;
  const std::byte* direct_;
  bool repeats_;  // One element, everywhere.
  alignas(64) std::byte buffer_[kBlock * 8];
};

// Where blocks of ComputeDType go in a tensor.
class BlockWriter {
 public:
  explicit BlockWriter(const Tensor& tensor)
      : dtype_(tensor.dtype()),
        cursor_(tensor),
        direct_(tensor.is_contiguous() && ComputeDType(dtype_) == dtype_
                    ? tensor.raw_data()
                    : nullptr) {}
  bool is_direct() const { return direct_ != nullptr; }
  // Room for the next `n` elements; Commit(n) when they are there.
  void* Next() { return is_direct() ? direct_ : buffer_; }
  void Commit(int64_t n);

 private:
  DType dtype_;
  Cursor cursor_;
  std::byte* direct_;
  alignas(64) std::byte buffer_[kBlock * 8];
};

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_BLOCKS_H_
