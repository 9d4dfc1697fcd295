// SPDX-License-Identifier: Apache-2.0
// One table of operations on single elements, and the loops made of them.
#include "rill/tensordict/ops/elementwise.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/arithmetic.h"
#include "rill/tensordict/ops/blocks.h"

namespace rill::ops_internal {
namespace {

using ops::BinaryOp;
using ops::UnaryOp;

// Integers wrap by way of an unsigned type that is not promoted to int.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>;
template <typename T>
constexpr bool kIsBool = std::is_same_v<T, bool>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

template <typename T>
T IntegerPower(T base, T exponent) {
  Wrapping<T> power = 1;
  auto factor = static_cast<Wrapping<T>>(base);
  for (auto left = static_cast<Wrapping<T>>(exponent); left > 0; left >>= 1) {
    if ((left & 1) != 0) power *= factor;
    factor *= factor;
  }
  return static_cast<T>(power);
}

// Division of floating point by zero is what IEEE 754 says.
template <typename T>
__attribute__((no_sanitize("float-divide-by-zero"))) inline T Divide(T a, T b) {
  return static_cast<T>(a / b);
}

template <BinaryOp op, typename T>
constexpr bool kHas =
    !kIsBool<T> ||
    (op != BinaryOp::kSub && op != BinaryOp::kDiv && op != BinaryOp::kPow);
template <BinaryOp op, typename T>
inline auto Do(T a, T b) {
  using W = Wrapping<T>;
  constexpr bool kWraps = !kIsFloat<T> && !kIsBool<T>;
  if constexpr (op == BinaryOp::kAdd) {
    if constexpr (kIsBool<T>)
      return static_cast<bool>(a | b);
    else if constexpr (kWraps)
      return static_cast<T>(W(a) + W(b));
    else
      return static_cast<T>(a + b);
  } else if constexpr (op == BinaryOp::kSub) {
    if constexpr (kWraps)
      return static_cast<T>(W(a) - W(b));
    else
      return static_cast<T>(a - b);
  } else if constexpr (op == BinaryOp::kMul) {
    if constexpr (kIsBool<T>)
      return static_cast<bool>(a & b);
    else if constexpr (kWraps)
      return static_cast<T>(W(a) * W(b));
    else
      return static_cast<T>(a * b);
  } else if constexpr (op == BinaryOp::kDiv) {
    // The lowest by -1 wraps too.
    if constexpr (kWraps && std::is_signed_v<T>) {
      return b == -1 ? static_cast<T>(W(0) - W(a)) : Divide(a, b);
    } else {
      return Divide(a, b);
    }
  } else if constexpr (op == BinaryOp::kPow) {
    if constexpr (kIsFloat<T>)
      return std::pow(a, b);
    else
      return IntegerPower(a, b);
  } else if constexpr (op == BinaryOp::kMinimum) {
    return b < a || b != b ? (a != a ? a : b) : a;
  } else if constexpr (op == BinaryOp::kMaximum) {
    return a < b || b != b ? (a != a ? a : b) : a;
  } else if constexpr (op == BinaryOp::kEq) {
    return a == b;
  } else if constexpr (op == BinaryOp::kNe) {
    return a != b;
  } else if constexpr (op == BinaryOp::kLt) {
    return a < b;
  } else if constexpr (op == BinaryOp::kLe) {
    return a <= b;
  } else if constexpr (op == BinaryOp::kGt) {
    return a > b;
  } else if constexpr (op == BinaryOp::kGe) {
    return a >= b;
  } else if constexpr (op == BinaryOp::kLogicalAnd) {
    return static_cast<bool>((a != T{0}) & (b != T{0}));
  } else if constexpr (op == BinaryOp::kLogicalOr) {
    return static_cast<bool>((a != T{0}) | (b != T{0}));
  } else {
    static_assert(op == BinaryOp::kLogicalXor);
    return (a != T{0}) != (b != T{0});
  }
}

template <UnaryOp op, typename T>
constexpr bool kHasUnary = op >= UnaryOp::kLogicalNot ||
                           (op >= UnaryOp::kSqrt ? kIsFloat<T> : !kIsBool<T>);
template <UnaryOp op, typename T>
inline auto Do(T a) {
  if constexpr (op == UnaryOp::kNeg) {
    if constexpr (kIsFloat<T>)
      return static_cast<T>(-a);
    else
      return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));
  } else if constexpr (op == UnaryOp::kAbs) {
    if constexpr (kIsFloat<T>)
      return static_cast<T>(std::fabs(a));
    else
      return a < T{0} ? Do<UnaryOp::kNeg, T>(a) : a;
  } else if constexpr (op == UnaryOp::kSign) {
    return a != a ? a : static_cast<T>((T{0} < a) - (a < T{0}));
  } else if constexpr (op == UnaryOp::kSqrt) {
    return static_cast<T>(std::sqrt(a));
  } else if constexpr (op == UnaryOp::kExp) {
    return static_cast<T>(std::exp(a));
  } else if constexpr (op == UnaryOp::kLog) {
    return static_cast<T>(std::log(a));
  } else if constexpr (op == UnaryOp::kReciprocal) {
    return Divide(T{1}, a);
  } else if constexpr (op == UnaryOp::kLogicalNot) {
    return a == T{0};
  } else if constexpr (op == UnaryOp::kIsNaN) {
    return a != a;
  } else {
    static_assert(op == UnaryOp::kIsFinite);
    return a - a == T{0};
  }
}

// Bools are bytes, of which all but 0 are true.
template <typename T>
using Stored = std::conditional_t<kIsBool<T>, uint8_t, T>;
template <typename T>
T Read(Stored<T> stored) {
  if constexpr (kIsBool<T>)
    return stored != 0;
  else
    return stored;
}

// `omp simd` says that iterations are apart, whichever of the pointers are the
// same, so that the loops become vector instructions without -O3.
template <BinaryOp op, typename T>
void Loop(const void* a, const void* b, void* out, int64_t n) {
  using Result = decltype(Do<op, T>(T{}, T{}));
  const auto* x = static_cast<const Stored<T>*>(a);
  const auto* y = static_cast<const Stored<T>*>(b);
  auto* z = static_cast<Stored<Result>*>(out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    z[i] = static_cast<Stored<Result>>(Do<op, T>(Read<T>(x[i]), Read<T>(y[i])));
  }
}

template <UnaryOp op, typename T>
void Loop(const void* a, void* out, int64_t n) {
  using Result = decltype(Do<op, T>(T{}));
  const auto* x = static_cast<const Stored<T>*>(a);
  auto* z = static_cast<Stored<Result>*>(out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    z[i] = static_cast<Stored<Result>>(Do<op, T>(Read<T>(x[i])));
  }
}

template <BinaryOp op, typename T>
BinaryKernel One() {
  if constexpr (kHas<op, T>)
    return Loop<op, T>;
  else
    return nullptr;
}
template <UnaryOp op, typename T>
UnaryKernel One() {
  if constexpr (kHasUnary<op, T>)
    return Loop<op, T>;
  else
    return nullptr;
}

template <auto op>
auto ForDType(DType dtype) -> decltype(One<op, float>()) {
  switch (ComputeDType(dtype)) {
    case DType::kBool:
      return One<op, bool>();
    case DType::kUInt8:
      return One<op, uint8_t>();
    case DType::kInt8:
      return One<op, int8_t>();
    case DType::kInt16:
      return One<op, int16_t>();
    case DType::kInt32:
      return One<op, int32_t>();
    case DType::kInt64:
      return One<op, int64_t>();
    case DType::kFloat32:
      return One<op, float>();
    case DType::kFloat64:
      return One<op, double>();
    default:
      return nullptr;
  }
}

}  // namespace

bool GivesBool(BinaryOp op) { return op >= BinaryOp::kEq; }
bool GivesBool(UnaryOp op) { return op >= UnaryOp::kLogicalNot; }

#define RILL_OPS_CASE_(Op, name) \
  case Op::name:                 \
    return ForDType<Op::name>(dtype)

BinaryKernel FindKernel(BinaryOp op, DType dtype) {
  switch (op) {
    RILL_OPS_CASE_(BinaryOp, kAdd);
    RILL_OPS_CASE_(BinaryOp, kSub);
    RILL_OPS_CASE_(BinaryOp, kMul);
    RILL_OPS_CASE_(BinaryOp, kDiv);
    RILL_OPS_CASE_(BinaryOp, kPow);
    RILL_OPS_CASE_(BinaryOp, kMinimum);
    RILL_OPS_CASE_(BinaryOp, kMaximum);
    RILL_OPS_CASE_(BinaryOp, kEq);
    RILL_OPS_CASE_(BinaryOp, kNe);
    RILL_OPS_CASE_(BinaryOp, kLt);
    RILL_OPS_CASE_(BinaryOp, kLe);
    RILL_OPS_CASE_(BinaryOp, kGt);
    RILL_OPS_CASE_(BinaryOp, kGe);
    RILL_OPS_CASE_(BinaryOp, kLogicalAnd);
    RILL_OPS_CASE_(BinaryOp, kLogicalOr);
    RILL_OPS_CASE_(BinaryOp, kLogicalXor);
  }
  return nullptr;
}

UnaryKernel FindKernel(UnaryOp op, DType dtype) {
  switch (op) {
    RILL_OPS_CASE_(UnaryOp, kNeg);
    RILL_OPS_CASE_(UnaryOp, kAbs);
    RILL_OPS_CASE_(UnaryOp, kSign);
    RILL_OPS_CASE_(UnaryOp, kSqrt);
    RILL_OPS_CASE_(UnaryOp, kExp);
    RILL_OPS_CASE_(UnaryOp, kLog);
    RILL_OPS_CASE_(UnaryOp, kReciprocal);
    RILL_OPS_CASE_(UnaryOp, kLogicalNot);
    RILL_OPS_CASE_(UnaryOp, kIsNaN);
    RILL_OPS_CASE_(UnaryOp, kIsFinite);
  }
  return nullptr;
}
#undef RILL_OPS_CASE_

}  // namespace rill::ops_internal
