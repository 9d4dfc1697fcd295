// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/reductions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

template <typename T>
constexpr bool kIsHalf =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool kIsFloat = kIsHalf<T> || std::is_floating_point_v<T>;

template <typename T>
long double Value(T element) {
  if constexpr (kIsHalf<T>)
    return ToDouble(element);
  else
    return static_cast<long double>(element);
}

template <typename T>
T Element(double value) {
  if constexpr (std::is_same_v<T, Float16>)
    return ToFloat16(value);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return ToBFloat16(value);
  else if constexpr (kIsFloat<T>)
    return static_cast<T>(value);
  else
    return static_cast<T>(static_cast<int64_t>(value));
}

// The oracle: one list of elements to one number, in long double or, wrapping,
// in int64.
template <typename T>
long double Reference(ReduceOp op, const std::vector<T>& elements) {
  const auto n = static_cast<long double>(elements.size());
  long double sum = 0;
  long double product = 1;
  long double squares = 0;
  uint64_t wrapped_sum = 0;
  uint64_t wrapped_product = 1;
  size_t best = 0;
  bool all = true;
  bool any = false;
  const bool least = op == ReduceOp::kMin || op == ReduceOp::kArgMin;
  for (size_t i = 0; i < elements.size(); ++i) {
    const long double x = Value(elements[i]);
    const long double y = Value(elements[best]);
    sum += x;
    product *= x;
    squares += x * x;
    if constexpr (!kIsFloat<T>) {
      wrapped_sum += static_cast<uint64_t>(elements[i]);
      wrapped_product *= static_cast<uint64_t>(elements[i]);
    }
    all = all && x != 0;
    any = any || x != 0;
    if (!std::isnan(y) && (std::isnan(x) || (least ? x < y : x > y))) best = i;
  }
  long double variance = 0;
  for (const T& element : elements) {
    variance += (Value(element) - sum / n) * (Value(element) - sum / n);
  }
  variance = elements.size() < 2 ? NAN : variance / (n - 1);
  switch (op) {
    case ReduceOp::kSum:
      return kIsFloat<T> ? sum : static_cast<int64_t>(wrapped_sum);
    case ReduceOp::kProd:
      return kIsFloat<T> ? product : static_cast<int64_t>(wrapped_product);
    case ReduceOp::kMean:
      return elements.empty() ? NAN : sum / n;
    case ReduceOp::kVar:
      return variance;
    case ReduceOp::kStd:
      return std::sqrt(variance);
    case ReduceOp::kNorm:
      return std::sqrt(squares);
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return Value(elements[best]);
    case ReduceOp::kArgMin:
    case ReduceOp::kArgMax:
      return static_cast<long double>(best);
    case ReduceOp::kAll:
      return all;
    case ReduceOp::kAny:
      return any;
  }
  return 0;
}

template <typename T>
Tensor RandomTensor(const Shape& shape, bool extremes, Draws* draws) {
  Tensor tensor = *Tensor::Empty(DTypeOf<T>, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    double value = static_cast<double>(draws->Int(-3, 4));
    if (kIsFloat<T>) value = draws->Double() * 4 - 2;
    if (std::is_same_v<T, bool>) value = static_cast<double>(draws->Int(0, 2));
    tensor.data<T>()[i] = Element<T>(value);
    if (!extremes || draws->Int(0, 4) != 0) continue;
    if constexpr (kIsFloat<T>) {
      const double edges[] = {NAN, INFINITY, -INFINITY, 0.0};
      tensor.data<T>()[i] = Element<T>(edges[draws->Int(0, 4)]);
    } else {
      tensor.data<T>()[i] = draws->Int(0, 2) == 0
                                ? std::numeric_limits<T>::max()
                                : std::numeric_limits<T>::min();
    }
  }
  return tensor;
}

double ResultAt(const Tensor& tensor, const Coordinate& at) {
  const Tensor wide = *Cast(tensor, DType::kFloat64);
  return ElementAt<double>(wide, at);
}

template <typename T>
class ReductionsOf : public ::testing::Test {};
using Types = ::testing::Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t,
                               Float16, BFloat16, float, double>;
TYPED_TEST_SUITE(ReductionsOf, Types);

TYPED_TEST(ReductionsOf, AgreeWithTheOracleOverAnyDimensions) {
  using T = TypeParam;
  Draws draws(31);
  for (int round = 0; round < 400; ++round) {
    const auto op = static_cast<ReduceOp>(round % 12);
    const int rank = static_cast<int>(draws.Int(0, 4));
    const Shape shape = draws.RandomShape(rank, 5);
    Tensor tensor = RandomTensor<T>(shape, round % 3 == 0, &draws);
    if (round % 2 == 0) tensor = draws.Scattered(tensor);
    std::vector<int> dims;
    std::vector<bool> reduced(rank, false);
    for (int d = 0; d < rank; ++d) {
      if (draws.Int(0, 2) == 0) continue;
      reduced[d] = true;
      dims.push_back(draws.Int(0, 2) == 0 ? d : d - rank);
    }
    if (dims.empty()) reduced.assign(rank, true);
    const bool keep = draws.Int(0, 2) == 0;
    const absl::StatusOr<Tensor> got =
        Reduce(op, tensor, {.dims = dims, .keep_dims = keep});

    std::map<Coordinate, std::vector<T>> groups;
    std::vector<int64_t> sizes;
    bool has_elements = true;
    for (int d = 0; d < rank; ++d) {
      if (!reduced[d]) sizes.push_back(shape[d]);
      if (reduced[d] && keep) sizes.push_back(1);
      has_elements = has_elements && (!reduced[d] || shape[d] > 0);
    }
    const bool of_float = op >= ReduceOp::kMean && op <= ReduceOp::kNorm;
    const bool of_some = op >= ReduceOp::kMin && op <= ReduceOp::kArgMax;
    if ((of_float && !kIsFloat<T>) || (of_some && !has_elements)) {
      ASSERT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument));
      continue;
    }
    RILL_ASSERT_OK(got.status());
    ASSERT_EQ(got->shape(), *Shape::Create(sizes));
    ForEachCoordinate(got->shape(), [&](const Coordinate& at) { groups[at]; });
    ForEachCoordinate(shape, [&](const Coordinate& at) {
      Coordinate to;
      for (int d = 0; d < rank; ++d) {
        if (!reduced[d]) to.push_back(at[d]);
        if (reduced[d] && keep) to.push_back(0);
      }
      groups[to].push_back(ElementAt<T>(tensor, at));
    });
    const double epsilon = std::is_same_v<T, double>    ? 1e-12
                           : std::is_same_v<T, float>   ? 1e-6
                           : std::is_same_v<T, Float16> ? 1e-3
                                                        : 1e-2;
    for (const auto& [at, elements] : groups) {
      const auto want = static_cast<double>(Reference<T>(op, elements));
      const double value = ResultAt(*got, at);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(value)) << static_cast<int>(op);
      } else if (!kIsFloat<T> || std::isinf(want)) {
        ASSERT_EQ(value, want) << static_cast<int>(op);
      } else {
        ASSERT_NEAR(value, want, epsilon * (1 + std::fabs(want)))
            << static_cast<int>(op);
      }
    }
  }
}

TYPED_TEST(ReductionsOf, CumSumAgreesWithSumsOfBeginnings) {
  using T = TypeParam;
  Draws draws(32);
  for (int round = 0; round < 30; ++round) {
    const int rank = static_cast<int>(draws.Int(1, 4));
    const Shape shape = draws.RandomShape(rank, 4);
    const Tensor tensor =
        draws.Scattered(RandomTensor<T>(shape, round % 2 == 0, &draws));
    const int dim = static_cast<int>(draws.Int(0, rank));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor sums, CumSum(tensor, dim - rank));
    ASSERT_EQ(sums.shape(), shape);
    for (int64_t i = 0; i < shape[dim]; ++i) {
      const Tensor want = *Sum(*tensor.Slice(dim, 0, i + 1), {.dims = {dim}});
      ASSERT_THAT(*sums.Select(dim, i)->Clone(), TensorNear(want, 0));
    }
  }
}

TEST(ReductionsTest, Example) {
  TensorDict batch({3, 2});
  ASSERT_TRUE(batch.Set("x", Iota<float>({3, 2, 2})).ok());
  ASSERT_TRUE(batch.Set("n/y", Iota<float>({3, 2})).ok());
  ASSERT_TRUE(batch.Set("name", NonTensor{"1"}).ok());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict result, Sum(batch, {.dim = 0}));
  EXPECT_EQ(result.batch_shape(), Shape({2}));
  EXPECT_THAT(*result.Find("x"), TensorElementsAre<float>(12, 15, 18, 21));
  EXPECT_TRUE(result.Contains("name"));
  RILL_ASSERT_OK_AND_ASSIGN(result, Mean(batch));
  EXPECT_EQ(result.batch_shape(), Shape({}));
  EXPECT_THAT(*result.Find("x"), TensorElementsAre<float>(5, 6));
  RILL_ASSERT_OK_AND_ASSIGN(result, Max(batch, {.over = ReduceOver::kLeaf}));
  EXPECT_THAT(*result.Find("x"), TensorIs(DType::kFloat32, {}));
  EXPECT_THAT(*result.Find("n/y"), TensorElementsAre<float>(5));
  EXPECT_TRUE(result.Contains("name"));
}

TEST(ReductionsTest, DictionariesKeepTheirBatchOrTheirFeatures) {
  Draws draws(33);
  const TensorDict dict = MakeNested({3, 2}, &draws);  // "n/c" is [3, 2, 2].
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict result,
                            Sum(dict, {.dim = -1, .keep_dims = true}));
  EXPECT_EQ(result.batch_shape(), Shape({3, 1}));
  EXPECT_EQ(result.FindDict("n/c")->batch_shape(), Shape({3, 1, 2}));
  EXPECT_EQ(result.Find("n/c/d")->shape(), Shape({3, 1, 2}));
  EXPECT_EQ(result.Find("n/b")->dtype(), DType::kInt64);
  RILL_ASSERT_OK_AND_ASSIGN(result, Any(dict, {.over = ReduceOver::kFeature}));
  EXPECT_EQ(result.batch_shape(), Shape({3, 2}));
  EXPECT_EQ(result.Find("a")->shape(), Shape({3, 2}));
  EXPECT_EQ(result.Find("n/c/d")->shape(), Shape({3, 2}));
  EXPECT_EQ(result.FindDict("n/c")->batch_shape(), Shape({3, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict sums, CumSum(dict, 0));
  EXPECT_EQ(sums.batch_shape(), dict.batch_shape());
  EXPECT_THAT(*sums.Find("a"), TensorElementsAre<int64_t>(0, 1, 2, 4, 6, 9));

  EXPECT_THAT(Mean(dict),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got int32"), HasSubstr("\"a\""))));
  EXPECT_THAT(Sum(dict, {.dim = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CumSum(dict, 2), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReductionsTest, SumsLoseNothingOnTheWay) {
  EXPECT_THAT(Sum(MakeTensor<double>({1e100, 1, -1e100}, {3})),
              IsOkAndHolds(TensorElementsAre<double>(1)));
  // Ten million times 0.1f: float sums would be off by percents.
  const Tensor tenth = MakeTensor<float>({0.1f}, {1});
  EXPECT_THAT(Sum(*tenth.Expand({10'000'000})),
              IsOkAndHolds(TensorElementsAre<float>(1'000'000.0149f)));
  EXPECT_THAT(Var(MakeTensor<float>({1e6f, 1e6f + 1, 1e6f + 2}, {3})),
              IsOkAndHolds(TensorElementsAre<float>(1)));
  EXPECT_THAT(Sum(MakeTensor<double>({INFINITY, 1}, {2})),
              IsOkAndHolds(TensorElementsAre<double>(INFINITY)));
}

TEST(ReductionsTest, NothingToReduceIsAsInTorch) {
  const Tensor none = *Tensor::Zeros(DType::kFloat32, {2, 0});
  EXPECT_THAT(Sum(none), IsOkAndHolds(TensorElementsAre<float>(0)));
  EXPECT_THAT(Prod(none, {.dims = {1}}),
              IsOkAndHolds(TensorElementsAre<float>(1, 1)));
  EXPECT_THAT(Mean(none), IsOkAndHolds(TensorElementsAre<float>(NAN)));
  EXPECT_THAT(All(none), IsOkAndHolds(TensorElementsAre<bool>(true)));
  EXPECT_THAT(Any(none), IsOkAndHolds(TensorElementsAre<bool>(false)));
  EXPECT_THAT(Min(none), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("got none in shape [2, 0]")));
  EXPECT_THAT(Max(none, {.dims = {0}}),
              IsOkAndHolds(TensorIs(DType::kFloat32, {0})));
  EXPECT_THAT(Var(MakeTensor<float>({3}, {1})),
              IsOkAndHolds(TensorElementsAre<float>(NAN)));
  EXPECT_THAT(Var(MakeTensor<float>({3}, {1}), {.correction = 0}),
              IsOkAndHolds(TensorElementsAre<float>(0)));
  const Tensor two = MakeTensor<double>({1, 3}, {2});  // Squares add up to 2.
  EXPECT_THAT(Var(two, {.correction = INT64_MAX}),
              IsOkAndHolds(TensorElementsAre<double>(NAN)));
  EXPECT_THAT(Var(two, {.correction = INT64_MIN}),
              IsOkAndHolds(TensorElementsAre<double>(0x1p-62)));
  EXPECT_THAT(Sum(*Tensor::Zeros(DType::kComplex64, {2})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Sum(none, {.dims = {0, -2}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::ops
