// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_LEARNING_ALIGNED_VECTOR_H_
#define RILL_EXAMPLES_LEARNING_ALIGNED_VECTOR_H_

#include <cstddef>
#include <new>
#include <vector>

namespace rill::learning {

// Allocates on 64-byte boundaries: a cache line, and the widest vector
// register.
//
// The network's arrays all use it, for speed and for repeatability. Vectorised
// loops may round differently before and after the first aligned element. Only
// equal alignment gives equal bits from one process to the next.
template <typename T>
struct AlignedAllocator {
  using value_type = T;

  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: a conversion.

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }

  template <typename U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

template <typename T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace rill::learning

#endif  // RILL_EXAMPLES_LEARNING_ALIGNED_VECTOR_H_
