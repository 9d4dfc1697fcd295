// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_SCALAR_H_
#define RILL_TENSORDICT_OPS_SCALAR_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

namespace rill::ops {

// One number for operations on tensors of any dtype. It takes the tensor's
// dtype only where nothing is lost. An integer or bool leaf wants a value that
// it can hold exactly. A floating-point leaf rounds once, and refuses a finite
// value that would become infinite.
//
// Thread-safety: immutable.
//
// Example (ScalarTest.Example runs it):
//   Full(DType::kUInt8, {2}, 7);     // {7, 7}
//   Full(DType::kUInt8, {2}, 256);   // INVALID_ARGUMENT
class Scalar {
 public:
  Scalar(bool value) : value_(value) {}  // NOLINT: reads as a literal
  template <std::signed_integral T>
  Scalar(T value)  // NOLINT
      : value_(static_cast<int64_t>(value)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Scalar(T value)  // NOLINT
      : value_(static_cast<uint64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value)  // NOLINT
      : value_(static_cast<double>(value)) {}

  const std::variant<bool, int64_t, uint64_t, double>& value() const {
    return value_;
  }
  double AsDouble() const;
  std::string ToString() const;

  // A tensor of shape []. INVALID_ARGUMENT, after `caller`, if `dtype` cannot
  // hold the value.
  absl::StatusOr<Tensor> ToTensor(absl::string_view caller, DType dtype) const;

 private:
  std::variant<bool, int64_t, uint64_t, double> value_;
};

// A contiguous tensor with `value` everywhere; errors of Scalar and of
// Tensor::Empty.
absl::StatusOr<Tensor> Full(DType dtype, const Shape& shape,
                            const Scalar& value);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_SCALAR_H_
