// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/arithmetic.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/half.h"
#include "rill/tensordict/ops/oracle.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr BinaryOp kBinary[] = {
    BinaryOp::kAdd,       BinaryOp::kSub,        BinaryOp::kMul,
    BinaryOp::kDiv,       BinaryOp::kPow,        BinaryOp::kMinimum,
    BinaryOp::kMaximum,   BinaryOp::kEq,         BinaryOp::kNe,
    BinaryOp::kLt,        BinaryOp::kLe,         BinaryOp::kGt,
    BinaryOp::kGe,        BinaryOp::kLogicalAnd, BinaryOp::kLogicalOr,
    BinaryOp::kLogicalXor};
constexpr UnaryOp kUnary[] = {UnaryOp::kNeg,        UnaryOp::kAbs,
                              UnaryOp::kSign,       UnaryOp::kSqrt,
                              UnaryOp::kExp,        UnaryOp::kLog,
                              UnaryOp::kReciprocal, UnaryOp::kLogicalNot,
                              UnaryOp::kIsNaN,      UnaryOp::kIsFinite};

// --- The oracle: one element, in a type that holds any result ----------------
// Integers as __int128, float32 and the 16-bit types as float, float64 as
// itself; Round gives the element type's value back.

template <typename T>
using Wide = std::conditional_t<
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float,
    std::conditional_t<std::is_floating_point_v<T>, T, __int128>>;

template <typename T>
Wide<T> Widen(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(ToDouble(value));
  } else {
    return static_cast<Wide<T>>(value);
  }
}

template <typename T>
T Round(Wide<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);  // Integers modulo 2^n.
  }
}

template <typename W>
W Power(W base, W exponent) {
  if constexpr (std::is_floating_point_v<W>) {
    return std::pow(base, exponent);
  } else {
    uint64_t power = 1;
    for (W i = 0; i < exponent; ++i) power *= static_cast<uint64_t>(base);
    return static_cast<W>(power);
  }
}

// IEEE 754 defines the quotient by zero; C++ does not, and UBSan says so.
template <typename W>
W Quotient(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) {
    if (b == 0) {
      if (a == 0 || a != a) return std::numeric_limits<W>::quiet_NaN();
      return std::copysign(std::numeric_limits<W>::infinity(), a) *
             std::copysign(W{1}, b);
    }
  }
  return a / b;
}

template <typename W>
W ReferenceBinary(BinaryOp op, W a, W b) {
  const bool has_nan = a != a || b != b;
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return Quotient(a, b);
    case BinaryOp::kPow:
      return Power(a, b);
    case BinaryOp::kMinimum:
      return has_nan ? a + b : (b < a ? b : a);
    case BinaryOp::kMaximum:
      return has_nan ? a + b : (a < b ? b : a);
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kLogicalAnd:
      return a != 0 && b != 0;
    case BinaryOp::kLogicalOr:
      return a != 0 || b != 0;
    case BinaryOp::kLogicalXor:
      return (a != 0) != (b != 0);
  }
  return 0;
}

template <typename W>
W ReferenceUnary(UnaryOp op, W a) {
  switch (op) {
    case UnaryOp::kNeg:
      return -a;
    case UnaryOp::kAbs:
      return a < 0 || std::signbit(static_cast<double>(a)) ? -a : a;
    case UnaryOp::kSign:
      return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
    case UnaryOp::kLogicalNot:
      return a == 0;
    case UnaryOp::kIsNaN:
      return a != a;
    case UnaryOp::kIsFinite:
      return std::isfinite(static_cast<double>(a));
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<W>) {
    switch (op) {
      case UnaryOp::kSqrt:
        return std::sqrt(a);
      case UnaryOp::kExp:
        return std::exp(a);
      case UnaryOp::kLog:
        return std::log(a);
      default:
        return Quotient(W{1}, a);
    }
  }
  return 0;
}

// --- Values: small numbers and the edges of the type -------------------------

template <typename T>
T RandomValue(Draws* draws) {
  if constexpr (std::is_same_v<T, bool>) {
    return draws->Int(0, 2) == 1;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    switch (draws->Int(0, 6)) {
      case 0:
        return Limits::max();
      case 1:
        return Limits::min();
      case 2:
        return static_cast<T>(-1);
      default:
        return static_cast<T>(draws->Int(-9, 10));
    }
  } else {
    const double values[] = {0.0,
                             -0.0,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             1.0,
                             draws->Double() * 1e4,
                             -draws->Double(),
                             draws->Double() * 3,
                             draws->Double() * 1e-7};
    const double value = values[draws->Int(0, 10)];
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(value);
    else
      return Round<T>(static_cast<float>(value));
  }
}

template <typename T>
Tensor RandomTensor(const Shape& shape, Draws* draws) {
  Tensor tensor = *Tensor::Empty(DTypeOf<T>, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    tensor.data<T>()[i] = RandomValue<T>(draws);
  }
  return tensor;
}

template <typename T>
bool Same(T got, T want) {
  const Wide<T> a = Widen(got);
  const Wide<T> b = Widen(want);
  return (a != a && b != b) || std::memcmp(&got, &want, sizeof(T)) == 0;
}

// The right sides for which `op` has a result.
template <typename T>
void MakeDefined(BinaryOp op, Tensor* b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    for (int64_t i = 0; i < b->num_elements(); ++i) {
      T& value = b->data<T>()[i];
      if (op == BinaryOp::kDiv && value == 0) value = 3;
      if (op == BinaryOp::kPow) value = static_cast<T>(i % 7);
    }
  }
}

template <typename T>
class ArithmeticOf : public ::testing::Test {};
using Types = ::testing::Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t,
                               Float16, BFloat16, float, double>;
TYPED_TEST_SUITE(ArithmeticOf, Types);

template <typename T>
bool Has(BinaryOp op) {
  return !std::is_same_v<T, bool> ||
         (op != BinaryOp::kSub && op != BinaryOp::kDiv && op != BinaryOp::kPow);
}
template <typename T>
bool Has(UnaryOp op) {
  if (op >= UnaryOp::kLogicalNot) return true;
  return op >= UnaryOp::kSqrt ? IsFloatingPoint(DTypeOf<T>)
                              : !std::is_same_v<T, bool>;
}

template <typename T>
void ExpectElement(const Tensor& got, const Coordinate& at, bool is_bool,
                   Wide<T> want, absl::string_view what) {
  if (is_bool) {
    ASSERT_EQ(ElementAt<uint8_t>(got, at), want != 0) << what;
  } else {
    ASSERT_TRUE(Same(ElementAt<T>(got, at), Round<T>(want)))
        << what << " " << got.DebugString();
  }
}

// All binary operations on contiguous, strided, broadcast and scalar right
// sides of random shapes, new and in place.
TYPED_TEST(ArithmeticOf, BinaryOperationsAgreeWithTheOracle) {
  using T = TypeParam;
  Draws draws(21);
  for (const BinaryOp op : kBinary) {
    const std::string name = std::to_string(static_cast<int>(op));
    for (int round = 0; round < 30; ++round) {
      const Shape shape =
          round == 0 ? Shape{3000}
                     : draws.RandomShape(static_cast<int>(draws.Int(0, 4)), 5);
      const Tensor packed = RandomTensor<T>(shape, &draws);
      Tensor a = round % 2 == 0 ? packed : draws.Scattered(packed);
      std::vector<int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
      for (int64_t& size : sizes) {
        if (round % 5 == 1 && draws.Int(0, 2) == 0) size = 1;
      }
      if (round % 7 == 1 && !sizes.empty()) sizes.erase(sizes.begin());
      Tensor b = RandomTensor<T>(*Shape::Create(sizes), &draws);
      MakeDefined<T>(op, &b);
      if (round % 3 == 0) b = draws.Scattered(b);
      const absl::StatusOr<Tensor> got = Compute(op, a, b);
      if (!Has<T>(op)) {
        ASSERT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("dtype: got bool")));
        continue;
      }
      RILL_ASSERT_OK(got.status());
      const bool is_bool = op >= BinaryOp::kEq;
      ASSERT_THAT(*got, TensorIs(is_bool ? DType::kBool : a.dtype(), shape));
      const Tensor wide = *b.Expand(shape);
      ForEachCoordinate(shape, [&](const Coordinate& at) {
        ExpectElement<T>(*got, at, is_bool,
                         ReferenceBinary(op, Widen(ElementAt<T>(a, at)),
                                         Widen(ElementAt<T>(wide, at))),
                         name);
      });
      if (is_bool && a.dtype() != DType::kBool) {
        EXPECT_THAT(ComputeInPlace(op, a, b),
                    StatusIs(absl::StatusCode::kInvalidArgument));
      } else {
        RILL_ASSERT_OK(ComputeInPlace(op, a, b));
        ASSERT_THAT(*a.Clone(), BitEqualTo(*got)) << name;
      }
    }
  }
}

TYPED_TEST(ArithmeticOf, UnaryOperationsAgreeWithTheOracle) {
  using T = TypeParam;
  Draws draws(22);
  for (const UnaryOp op : kUnary) {
    const std::string name = std::to_string(static_cast<int>(op));
    for (int round = 0; round < 20; ++round) {
      const Shape shape =
          round == 0 ? Shape{3000}
                     : draws.RandomShape(static_cast<int>(draws.Int(0, 4)), 5);
      Tensor a = RandomTensor<T>(shape, &draws);
      if (round % 2 == 1) a = draws.Scattered(a);
      const absl::StatusOr<Tensor> got = Compute(op, a);
      if (!Has<T>(op)) {
        ASSERT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument));
        continue;
      }
      RILL_ASSERT_OK(got.status());
      const bool is_bool = op >= UnaryOp::kLogicalNot;
      ForEachCoordinate(shape, [&](const Coordinate& at) {
        ExpectElement<T>(*got, at, is_bool,
                         ReferenceUnary(op, Widen(ElementAt<T>(a, at))), name);
      });
      if (is_bool && a.dtype() != DType::kBool) continue;
      RILL_ASSERT_OK(ComputeInPlace(op, a));
      ASSERT_THAT(*a.Clone(), BitEqualTo(*got)) << name;
    }
  }
}

TYPED_TEST(ArithmeticOf, ScalarsActAsTensorsFullOfThem) {
  using T = TypeParam;
  Draws draws(23);
  const Tensor a = RandomTensor<T>({2500}, &draws);
  for (const BinaryOp op : kBinary) {
    if (!Has<T>(op)) continue;
    const Tensor ones = *Full(a.dtype(), {2500}, 1);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor want, Compute(op, a, ones));
    EXPECT_THAT(Compute(op, a, 1), IsOkAndHolds(BitEqualTo(want)));
    EXPECT_THAT(Compute(op, a, true), IsOkAndHolds(BitEqualTo(want)));
    EXPECT_THAT(Compute(op, a, 1.0f), IsOkAndHolds(BitEqualTo(want)));
  }
}

TEST(ArithmeticTest, Example) {
  TensorDict a({2});
  ASSERT_TRUE(a.Set("x", MakeTensor<float>({1, 2}, {2})).ok());
  ASSERT_TRUE(a.Set("n/y", MakeTensor<int32_t>({3, 5}, {2})).ok());
  ASSERT_TRUE(a.Set("name", NonTensor{"1"}).ok());
  const TensorDict b = *a.Clone();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict mean, Div(*Add(a, b), 2));
  EXPECT_THAT(mean, BitEqualTo(a));
  EXPECT_TRUE(mean.Contains("name"));
  RILL_ASSERT_OK(AddInPlace(a, b));
  EXPECT_THAT(*a.Find("n/y"), TensorElementsAre<int32_t>(6, 10));
  EXPECT_THAT(*Gt(a, b)->Find("x"), TensorElementsAre<bool>(true, true));
}

TEST(ArithmeticTest, ClampAndLerp) {
  const Tensor x = MakeTensor<float>({-2, 0.5f, 3, NAN}, {4});
  EXPECT_THAT(Clamp(x, -1, 1),
              IsOkAndHolds(TensorElementsAre<float>(-1, 0.5f, 1, NAN)));
  EXPECT_THAT(Clamp(x, {}, 1),
              IsOkAndHolds(TensorElementsAre<float>(-2, 0.5f, 1, NAN)));
  EXPECT_THAT(Clamp(x, {}, {}), IsOkAndHolds(BitEqualTo(x)));
  EXPECT_THAT(Lerp(x, *Add(x, 4), 0.25),
              IsOkAndHolds(TensorElementsAre<float>(-1, 1.5f, 4, NAN)));
}

// Whatever is wrong with the last leaf, the first one is as before.
TEST(ArithmeticTest, RefusedInPlaceOperationsChangeNothing) {
  TensorDict a({2});
  ASSERT_TRUE(a.Set("x", MakeTensor<int32_t>({10, 20}, {2})).ok());
  ASSERT_TRUE(a.Set("n/y", MakeTensor<int32_t>({3, 5}, {2})).ok());
  const TensorDict before = *a.Clone();
  TensorDict b = *a.Clone();
  b.Find("n/y")->data<int32_t>()[1] = 0;
  EXPECT_THAT(DivInPlace(a, b),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("zero"), HasSubstr("\"n/y\""))));
  EXPECT_THAT(DivInPlace(a, 0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PowInPlace(a, -1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(AddInPlace(a, 0.5), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("got 0.5")));
  EXPECT_THAT(EqInPlace(a, b), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_TRUE(b.Set("n/y", Iota<int64_t>({2})).ok());
  EXPECT_THAT(AddInPlace(a, b),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got int64"), HasSubstr("want int32"))));
  ASSERT_TRUE(b.Set("n/y", Iota<int32_t>({2, 3})).ok());
  EXPECT_THAT(AddInPlace(a, b),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got [2, 3]"), HasSubstr("want [2]"))));
  ASSERT_TRUE(b.Delete("n/y").ok());
  EXPECT_THAT(AddInPlace(a, b),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("n/y")));
  ASSERT_TRUE(b.Set("n/y", Iota<int32_t>({2})).ok());
  ASSERT_TRUE(b.Set("z", Iota<int32_t>({2})).ok());
  EXPECT_THAT(AddInPlace(a, b),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("z")));
  EXPECT_THAT(a, BitEqualTo(before));

  ASSERT_TRUE(a.Set("n/y", *Iota<int32_t>({1}).Expand({2})).ok());
  EXPECT_THAT(AddInPlace(a, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(NegInPlace(a), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(*a.Find("x"), TensorElementsAre<int32_t>(10, 20));
}

TEST(ArithmeticTest, ATensorIsAddedToItselfTurnedAround) {
  const Tensor a = Iota<int32_t>({3, 3});
  const Tensor turned = *a.Permute({1, 0});
  const Tensor want = *Add(a, turned);
  RILL_ASSERT_OK(AddInPlace(a, turned));
  EXPECT_THAT(a, BitEqualTo(want));
  RILL_ASSERT_OK(MulInPlace(a, a));
  EXPECT_EQ(a.data<int32_t>()[8], 256);
}

TEST(ArithmeticTest, DTypesWithoutArithmeticAreRefused) {
  for (const DType dtype : {DType::kUInt16, DType::kUInt32, DType::kUInt64,
                            DType::kComplex64, DType::kComplex128}) {
    const Tensor a = *Tensor::Zeros(dtype, {2});
    EXPECT_THAT(Add(a, a), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr(DTypeName(dtype))));
    EXPECT_THAT(Neg(a), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ArithmeticTest, AnyByteButZeroIsTrue) {
  Tensor a = *Tensor::Zeros(DType::kBool, {3});
  a.raw_data()[0] = std::byte{7};
  a.raw_data()[1] = std::byte{1};
  const Tensor b = MakeTensor<bool>({true, true, true}, {3});
  EXPECT_THAT(Eq(a, b),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, false)));
  EXPECT_THAT(
      Mul(a, b),
      IsOkAndHolds(BitEqualTo(MakeTensor<bool>({true, true, false}, {3}))));
}

}  // namespace
}  // namespace rill::ops
