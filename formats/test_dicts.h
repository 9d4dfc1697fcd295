// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TEST_DICTS_H_
#define RILL_FORMATS_TEST_DICTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// Dictionaries that the tests of the formats save and load.
namespace rill::formats_internal {

// The path of a copy of testdata/tensordict: a test's data may be links, which
// loading refuses.
std::string Fixture(absl::string_view name);

template <typename T>
Tensor Values(const std::vector<T>& values, const Shape& shape) {
  auto tensor = Tensor::From<T>(values, shape);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return *tensor;
}

inline Tensor Floats(const std::vector<float>& values, const Shape& shape) {
  return Values<float>(values, shape);
}

// Batch [2]: several dtypes, a name to be escaped, no elements, a value.
TensorDict Sample();

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_TEST_DICTS_H_
