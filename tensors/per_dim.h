// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_PER_DIM_H_
#define RILL_TENSORS_PER_DIM_H_

#include <cstdint>
#include <cstring>

namespace rill::tensor_internal {

// A number a dimension, like std::array but for its copies. They go by 16 bytes
// at a time. From 64 at once g++ makes a `rep movs`, which takes longer to
// start than to run. Tensors are copied all the time.
// Thread-safety: thread-compatible.
class PerDim {
 public:
  static constexpr int kSize = 8;

  PerDim() : values_{} {}
  PerDim(const PerDim& other) { Copy(other); }
  PerDim& operator=(const PerDim& other) {
    Copy(other);
    return *this;
  }

  int64_t operator[](int dim) const { return values_[dim]; }
  int64_t& operator[](int dim) { return values_[dim]; }
  const int64_t* data() const { return values_; }
  int64_t* data() { return values_; }

 private:
  void Copy(const PerDim& other) {
    constexpr int kPair = 2;
    for (int i = 0; i < kSize; i += kPair) {
      std::memmove(values_ + i, other.values_ + i, kPair * sizeof(int64_t));
    }
  }

  int64_t values_[kSize];
};

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_PER_DIM_H_
