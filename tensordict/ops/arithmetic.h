// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_ARITHMETIC_H_
#define RILL_TENSORDICT_OPS_ARITHMETIC_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/ops/scalar.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Arithmetic on tensors and, leaf by leaf, on whole dictionaries, for dtypes
// bool, uint8, int8 to int64, float16, bfloat16, float32 and float64.
//
// The right side is one of the same kind, or a Scalar. For dictionaries it has
// the same keys. Its dtypes are the left side's: nothing is cast, and a Scalar
// must be one that the leaf's dtype can hold. Its shapes are the left side's,
// or become so by repeating sizes of 1 and missing leading dimensions. Lazy
// stacks and ragged tensors need partners of the same members and shapes.
// Values without a shape are the left side's; the device is unset.
//
// Results are new, contiguous, of the left side's shape and dtype (bool for
// comparisons, logic and tests). The ...InPlace forms write into the bytes of
// the left side; what they refuse is found before the first byte is written, on
// all leaves.
//
// Numbers: float16 and bfloat16 are computed in float32 and rounded once.
// Integers wrap; Div cuts towards zero. Minimum, Maximum, Clamp and Sign give
// NaN for NaN. For bool, Add and Maximum are or, Mul and Minimum are and.
//
// Errors: INVALID_ARGUMENT for keys, shapes or dtypes that differ, and a dtype
//   that the operation is not for. So too for an integer divided by zero or
//   raised to a negative power, and memory that is not the host's. NOT_FOUND
//   names a missing key. FAILED_PRECONDITION for results that cannot be written
//   (read-only, or repeating elements).
// Thread-safety: thread-safe for reading; bytes are the users' to synchronise.
// Cost: O(bytes); contiguous leaves but for 16-bit floats run at the speed of
//   vector instructions.
//
// Example (ArithmeticTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TensorDict mean, ops::Div(*ops::Add(a, b), 2));
//   RILL_RETURN_IF_ERROR(ops::AddInPlace(gradients, update));

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,  // Not for bool.
  kMul,
  kDiv,  // Not for bool.
  kPow,  // Not for bool.
  kMinimum,
  kMaximum,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLogicalAnd,  // Logic: what is not 0 is true, NaN too.
  kLogicalOr,
  kLogicalXor,
};
enum class UnaryOp : uint8_t {
  kNeg,   // Not for bool.
  kAbs,   // Not for bool.
  kSign,  // Not for bool. -1, 0 (of either zero), 1.
  kSqrt,  // These four for floating point only.
  kExp,
  kLog,
  kReciprocal,
  kLogicalNot,
  kIsNaN,     // False for integers.
  kIsFinite,  // True for integers.
};

template <typename T>
concept TensorOrDict = std::same_as<T, Tensor> || std::same_as<T, TensorDict>;

// The right side: a T (not owned) or a Scalar.
template <TensorOrDict T>
class Operand {
 public:
  Operand(const T& value) : value_(&value) {}  // NOLINT: stands for either
  template <typename N>
  requires(std::is_arithmetic_v<N> || std::same_as<N, Scalar>)
      Operand(const N& scalar)
      : scalar_(scalar) {}  // NOLINT

  const T* value() const { return value_; }  // Null for a Scalar.
  const Scalar& scalar() const { return scalar_; }

 private:
  const T* value_ = nullptr;
  Scalar scalar_ = 0;
};

absl::StatusOr<Tensor> Compute(BinaryOp op, const Tensor& a,
                               const Operand<Tensor>& b);
absl::StatusOr<TensorDict> Compute(BinaryOp op, const TensorDict& a,
                                   const Operand<TensorDict>& b);
absl::StatusOr<Tensor> Compute(UnaryOp op, const Tensor& a);
absl::StatusOr<TensorDict> Compute(UnaryOp op, const TensorDict& a);
// INVALID_ARGUMENT for operations whose result is bool and `a` is not.
absl::Status ComputeInPlace(BinaryOp op, const Tensor& a,
                            const Operand<Tensor>& b);
absl::Status ComputeInPlace(BinaryOp op, const TensorDict& a,
                            const Operand<TensorDict>& b);
absl::Status ComputeInPlace(UnaryOp op, const Tensor& a);
absl::Status ComputeInPlace(UnaryOp op, const TensorDict& a);

// Add(a, b), and AddInPlace(a, b) for a += b; and so on.
#define RILL_OPS_BINARY_(Name)                                            \
  template <TensorOrDict T>                                               \
  absl::StatusOr<T> Name(const T& a,                                      \
                         const std::type_identity_t<Operand<T>>& b) {     \
    return Compute(BinaryOp::k##Name, a, b);                              \
  }                                                                       \
  template <TensorOrDict T>                                               \
  absl::Status Name##InPlace(const T& a,                                  \
                             const std::type_identity_t<Operand<T>>& b) { \
    return ComputeInPlace(BinaryOp::k##Name, a, b);                       \
  }
#define RILL_OPS_UNARY_(Name)                   \
  template <TensorOrDict T>                     \
  absl::StatusOr<T> Name(const T& a) {          \
    return Compute(UnaryOp::k##Name, a);        \
  }                                             \
  template <TensorOrDict T>                     \
  absl::Status Name##InPlace(const T& a) {      \
    return ComputeInPlace(UnaryOp::k##Name, a); \
  }
RILL_OPS_BINARY_(Add)
RILL_OPS_BINARY_(Sub)
RILL_OPS_BINARY_(Mul)
RILL_OPS_BINARY_(Div)
RILL_OPS_BINARY_(Pow)
RILL_OPS_BINARY_(Minimum)
RILL_OPS_BINARY_(Maximum)
RILL_OPS_BINARY_(Eq)
RILL_OPS_BINARY_(Ne)
RILL_OPS_BINARY_(Lt)
RILL_OPS_BINARY_(Le)
RILL_OPS_BINARY_(Gt)
RILL_OPS_BINARY_(Ge)
RILL_OPS_BINARY_(LogicalAnd)
RILL_OPS_BINARY_(LogicalOr)
RILL_OPS_BINARY_(LogicalXor)
RILL_OPS_UNARY_(Neg)
RILL_OPS_UNARY_(Abs)
RILL_OPS_UNARY_(Sign)
RILL_OPS_UNARY_(Sqrt)
RILL_OPS_UNARY_(Exp)
RILL_OPS_UNARY_(Log)
RILL_OPS_UNARY_(Reciprocal)
RILL_OPS_UNARY_(LogicalNot)
RILL_OPS_UNARY_(IsNaN)
RILL_OPS_UNARY_(IsFinite)
#undef RILL_OPS_BINARY_
#undef RILL_OPS_UNARY_

// Minimum(Maximum(a, low), high), with the sides that are given.
template <TensorOrDict T>
absl::StatusOr<T> Clamp(const T& a, const std::optional<Scalar>& low,
                        const std::optional<Scalar>& high) {
  absl::StatusOr<T> result = low ? Maximum(a, *low) : absl::StatusOr<T>(a);
  if (!result.ok() || !high) return result;
  return Minimum(*result, *high);
}

// a + weight * (b - a), each step rounded to the dtype; floating point only.
template <TensorOrDict T>
absl::StatusOr<T> Lerp(const T& a, const T& b, const Scalar& weight) {
  absl::StatusOr<T> result = Sub(b, a);
  if (result.ok()) result = Mul(*result, weight);
  return result.ok() ? Add(*result, a) : result;
}

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_ARITHMETIC_H_
