// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_TEST_TENSORS_H_
#define RILL_TENSORS_TEST_TENSORS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/types/span.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// Tensors for the tests of tensors/, tensordict/ and specs/.
namespace rill {

template <typename T>
Tensor MakeTensor(std::initializer_list<T> values, const Shape& shape) {
  return *Tensor::From(absl::Span<const T>(values.begin(), values.size()),
                       shape);
}

// 0, 1, 2, ... row-major.
template <typename T>
Tensor Iota(const Shape& shape) {
  Tensor tensor = *Tensor::Empty(DTypeOf<T>, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    tensor.data<T>()[i] = static_cast<T>(i);
  }
  return tensor;
}

}  // namespace rill

#endif  // RILL_TENSORS_TEST_TENSORS_H_
