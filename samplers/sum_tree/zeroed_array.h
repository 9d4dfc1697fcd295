// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SUM_TREE_ZEROED_ARRAY_H_
#define RILL_SAMPLERS_SUM_TREE_ZEROED_ARRAY_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace rill::samplers_internal {

// 64-byte aligned bytes, all 0, that take memory only where they are touched
// (by huge pages where there are many), or the program ends as with a vector.
struct FreeZeroed {
  void operator()(void* memory) const { std::free(memory); }
};
using ZeroedBytes = std::unique_ptr<void, FreeZeroed>;
ZeroedBytes AllocateZeroed(int64_t bytes, void** aligned);

// An array of numbers in such bytes.
// Thread-safety: thread-compatible.
template <typename T>
class ZeroedArray {
 public:
  static_assert(std::is_trivial_v<T>);

  explicit ZeroedArray(int64_t size = 0) : size_(size) {
    void* aligned = nullptr;
    bytes_ = AllocateZeroed(size * int64_t{sizeof(T)}, &aligned);
    data_ = static_cast<T*>(aligned);
  }

  int64_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

 private:
  int64_t size_;
  ZeroedBytes bytes_;
  T* data_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SUM_TREE_ZEROED_ARRAY_H_
