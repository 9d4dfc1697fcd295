// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TEST_DICTS_H_
#define RILL_FORMATS_TEST_DICTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
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
  return *Tensor::From<T>(values, shape);
}

inline Tensor Floats(const std::vector<float>& values, const Shape& shape) {
  return Values<float>(values, shape);
}

// Writes a consolidated file of `data` and this JSON, and says where.
std::string WriteConsolidated(absl::string_view name, absl::string_view data,
                              absl::string_view json);

// `save` returns the error that is planted at each step of writing a file.
void ExpectEveryFaultIsReturned(absl::FunctionRef<absl::Status()> save);

// Both folders have the same files below them, byte for byte.
void ExpectSameFiles(const std::string& ours, const std::string& peers);

// `text` with one to three characters replaced, inserted or taken out: those of
// `round`, some by others of `alphabet`.
std::string WithRandomEdits(std::string text, const std::string& alphabet,
                            const Rng& rng, uint64_t round);

// `bytes` with another byte at a place, a function of the numbers.
std::string WithRandomByte(std::string bytes, const Rng& rng, uint64_t round);

// Batch [2]: several dtypes, a name to be escaped, no elements, a value.
TensorDict Sample();

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_TEST_DICTS_H_
