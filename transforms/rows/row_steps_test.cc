// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/row_steps.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/rows/row_kernels.h"
#include "rill/transforms/rows/row_map.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Kind = RowStep::Kind;

std::shared_ptr<const RowMap> Make(const RowStep& step) {
  absl::StatusOr<std::shared_ptr<const RowMap>> map = MakeRowStep(step);
  RILL_EXPECT_OK(map);
  return map.ok() ? *std::move(map) : nullptr;
}

// The rows [n, ...] of `from` through the map of `step`.
template <typename To, typename From>
std::vector<To> Map(const RowStep& step, const std::vector<From>& from,
                    const Shape& row) {
  const auto map = Make(step);
  const int64_t count = static_cast<int64_t>(from.size()) /
                        std::max<int64_t>(1, row.num_elements());
  const absl::StatusOr<LeafSpec> after =
      map->MapSpec(LeafSpec::Unbounded(DTypeOf<From>, row));
  RILL_EXPECT_OK(after);
  if (!after.ok()) return {};
  EXPECT_EQ(after->dtype, DTypeOf<To>);
  std::vector<To> to(static_cast<size_t>(count * after->shape.num_elements()));
  RILL_EXPECT_OK(map->MapRows(DTypeOf<From>, row, count,
                              reinterpret_cast<const std::byte*>(from.data()),
                              reinterpret_cast<std::byte*>(to.data())));
  return to;
}

template <typename T>
std::vector<T> Range(size_t n, T first, T step) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(first + static_cast<T>(i) * step);
  }
  return values;
}

// --- Arithmetic --------------------------------------------------------------

TEST(RowStepsTest, AffineStepsAreRoundedOnce) {
  ForEachTarget([] {
    for (const size_t n :
         {size_t{0}, size_t{1}, size_t{3}, size_t{8}, size_t{37}}) {
      const std::vector<float> x = Range<float>(n, -3.7f, 0.31f);
      const RowStep scale = {.scale = {0.1}, .loc = {-0.3}};
      const RowStep divide = {
          .kind = Kind::kShiftThenDivide, .scale = {0.7}, .loc = {0.2}};
      const std::vector<float> scaled = Map<float>(scale, x, {});
      const std::vector<float> divided = Map<float>(divide, x, {});
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(scaled[i], std::fma(x[i], 0.1f, -0.3f));
        EXPECT_EQ(divided[i], static_cast<float>((double{x[i]} - double{0.2f}) /
                                                 double{0.7f}));
      }
    }
  });
}

// A sum that double rounds to a tie of two float32 shows whether it was rounded
// twice.
TEST(RowStepsTest, ScaledElementsAreThoseOfFmaWithEveryInstructionSet) {
  const float inf = std::numeric_limits<float>::infinity();
  const float tie = 1 + 0x1p-12f;  // Its square is 1 + 2^-11 + 2^-24.
  std::vector<float> x = {tie, tie, -tie, -tie, inf, -inf, 1e38f, 0, -0.f};
  std::vector<double> scale = {tie, tie, tie, tie, 1, 1, 1e38f, 1, 1};
  std::vector<double> loc = {0x1p-60, -0x1p-60, 0x1p-60,  -0x1p-60, 1,
                             1,       0,        0x1p-149, -0.};
  std::mt19937 random(3);
  const auto any = [&random] {
    const float digits = static_cast<float>(random()) * 0x1p-31f - 1;
    return std::ldexp(digits, static_cast<int>(random() % 80) - 40);
  };
  for (int i = 0; i < 10'000; ++i) {
    x.push_back(any());
    scale.push_back(any());
    loc.push_back(any());
  }
  const Shape row = {static_cast<int64_t>(x.size())};
  ForEachTarget([&] {
    const std::vector<float> y =
        Map<float>({.scale = scale, .loc = loc}, x, row);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], std::fma(x[i], static_cast<float>(scale[i]),
                               static_cast<float>(loc[i])))
          << i;
    }
  });
}

TEST(RowStepsTest, EachElementOfARowHasItsNumbers) {
  ForEachTarget([] {
    for (const size_t width : {size_t{2}, size_t{7}, size_t{16}, size_t{19}}) {
      std::vector<double> scale, loc;
      for (size_t i = 0; i < width; ++i) {
        scale.push_back(0.5 + static_cast<double>(i));
        loc.push_back(-1.0 * static_cast<double>(i));
      }
      const std::vector<float> x = Range<float>(3 * width, -2, 0.25f);
      const Shape row = {static_cast<int64_t>(width)};
      for (const Kind kind : {Kind::kScaleThenShift, Kind::kShiftThenDivide}) {
        const std::vector<float> y =
            Map<float>({.kind = kind, .scale = scale, .loc = loc}, x, row);
        for (size_t i = 0; i < x.size(); ++i) {
          const double s = scale[i % width];
          const double l = loc[i % width];
          EXPECT_EQ(y[i], static_cast<float>(kind == Kind::kScaleThenShift
                                                 ? x[i] * s + l
                                                 : (x[i] - l) / s));
        }
      }
    }
  });
}

TEST(RowStepsTest, Float64IsComputedInFloat64) {
  EXPECT_THAT(Map<double>(RowStep{.scale = {0.1}, .loc = {1}},
                          std::vector<double>{3}, {}),
              ElementsAre(3 * 0.1 + 1));
}

TEST(RowStepsTest, BytesBecomeTheNearestFloatsOfTheUnitInterval) {
  ForEachTarget([] {
    std::vector<uint8_t> bytes(256 + 5);
    std::vector<float> want;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(i);
      want.push_back(static_cast<float>(bytes[i]) / 255.0f);
    }
    EXPECT_THAT(Map<float>({.kind = Kind::kUnitInterval}, bytes, {}),
                ElementsAreArray(want));
  });
}

TEST(RowStepsTest, ClipsToTheBoundsAndKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> clipped =
      Map<float>({.kind = Kind::kClip, .low = -1, .high = 1},
                 std::vector<float>{-3, 0.5f, 2, nan}, {});
  EXPECT_THAT(std::vector<float>(clipped.begin(), clipped.end() - 1),
              ElementsAre(-1, 0.5f, 1));
  EXPECT_TRUE(std::isnan(clipped[3]));
}

TEST(RowStepsTest, IntegersAreClippedToWholeNumbersInside) {
  EXPECT_THAT(Map<int64_t>({.kind = Kind::kClip, .low = -1.5, .high = 1e30},
                           std::vector<int64_t>{-2, 7, INT64_MAX}, {}),
              ElementsAre(-1, 7, INT64_MAX));
}

TEST(RowStepsTest, IntegersOfWhichNoneIsInsideAreRefused) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto refuses = [](DType dtype, double low, double high) {
    const absl::StatusOr<LeafSpec> after =
        Make({.kind = Kind::kClip, .low = low, .high = high})
            ->MapSpec(LeafSpec::Unbounded(dtype, {2}));
    return after.status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refuses(DType::kInt32, 0.25, 0.75));
  EXPECT_TRUE(refuses(DType::kUInt8, -3, -1));
  EXPECT_TRUE(refuses(DType::kUInt8, 256, inf));
  EXPECT_TRUE(refuses(DType::kInt64, 0x1p63, inf));
  EXPECT_FALSE(refuses(DType::kInt64, -inf, -0x1p63));
  EXPECT_FALSE(refuses(DType::kUInt8, 255, 255.5));
  EXPECT_FALSE(refuses(DType::kFloat32, 0.25, 0.75));
}

TEST(RowStepsTest, SignsAndFlags) {
  EXPECT_THAT(
      Map<float>({.kind = Kind::kSign}, std::vector<float>{-2.5f, 0, 3}, {}),
      ElementsAre(-1, 0, 1));
  EXPECT_THAT(
      Map<uint8_t>({.kind = Kind::kSign}, std::vector<uint8_t>{0, 9}, {}),
      ElementsAre(0, 1));
  EXPECT_THAT(Map<float>({.kind = Kind::kIsPositive},
                         std::vector<float>{-2.5f, 0, 3}, {}),
              ElementsAre(0, 0, 1));
}

TEST(RowStepsTest, CastsAsCastDoes) {
  EXPECT_THAT(Map<int32_t>({.kind = Kind::kCast, .dtype = DType::kInt32},
                           std::vector<float>{-1.7f, 2.2f}, {}),
              ElementsAre(-1, 2));
}

// --- Images ------------------------------------------------------------------

TEST(RowStepsTest, ChannelsComeFirst) {
  // Two images of 1 x 2 pixels with 3 channels.
  EXPECT_THAT(Map<uint8_t>({.kind = Kind::kChannelsFirst},
                           Range<uint8_t>(12, 0, 1), {1, 2, 3}),
              ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
}

TEST(RowStepsTest, CropsKeepRowsAndColumns) {
  // Two images of 3 x 4.
  EXPECT_THAT(
      Map<uint8_t>(
          {.kind = Kind::kCrop, .top = 1, .left = 2, .height = 2, .width = 2},
          Range<uint8_t>(24, 0, 1), {3, 4}),
      ElementsAre(6, 7, 10, 11, 18, 19, 22, 23));
}

// --- Specs -------------------------------------------------------------------

TEST(RowStepsTest, DomainsFollowTheValues) {
  const LeafSpec unit = LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1);
  EXPECT_THAT(Make({.scale = {-2}, .loc = {1}})->MapSpec(unit),
              IsOkAndHolds(LeafSpec::Bounded(DType::kFloat32, {4}, -1, 3)));
  EXPECT_THAT(Make({.kind = Kind::kClip, .low = 0, .high = 5})->MapSpec(unit),
              IsOkAndHolds(LeafSpec::Bounded(DType::kFloat32, {4}, 0, 1)));
  for (const LeafSpec& leaf : {LeafSpec::Bounded(DType::kInt64, {4}, -5, 5),
                               LeafSpec::Unbounded(DType::kInt64, {4})}) {
    EXPECT_THAT(
        Make({.kind = Kind::kClip, .low = 0.5, .high = 2.5})->MapSpec(leaf),
        IsOkAndHolds(LeafSpec::Bounded(DType::kInt64, {4}, 1, 2)));
  }
  EXPECT_THAT(
      Make({.kind = Kind::kCast, .dtype = DType::kFloat64})->MapSpec(unit),
      IsOkAndHolds(LeafSpec::Bounded(DType::kFloat64, {4}, -1, 1)));
  EXPECT_THAT(Make({.kind = Kind::kChannelsFirst})
                  ->MapSpec(LeafSpec::Bounded(DType::kUInt8, {2, 5, 3}, 0, 9)),
              IsOkAndHolds(LeafSpec::Bounded(DType::kUInt8, {3, 2, 5}, 0, 9)));
}

TEST(RowStepsTest, LeavesThatDoNotFitAreNamedWithWhatIsWanted) {
  const auto expect = [](const RowStep& step, const LeafSpec& leaf,
                         const char* want) {
    EXPECT_THAT(Make(step)->MapSpec(leaf),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(want)));
  };
  const LeafSpec flags = LeafSpec::Binary({4});
  expect({}, flags, "want float32 or float64");
  expect({.kind = Kind::kClip, .high = 1}, flags, "want a number");
  expect({.kind = Kind::kUnitInterval}, flags, "want uint8");
  expect({.kind = Kind::kChannelsFirst}, flags, "[..., height, width,");
  expect({.kind = Kind::kCrop, .top = 1, .height = 3, .width = 1},
         LeafSpec::Unbounded(DType::kUInt8, {3, 4}), "rows 1 to 4");
  expect({.scale = {1, 2}}, LeafSpec::Unbounded(DType::kFloat32, {3}),
         "one element for each of 2");
  expect({.kind = Kind::kCast}, LeafSpec::Unbounded(DType::kComplex64, {}),
         "arithmetic");
}

TEST(RowStepsTest, StepsThatNoRowCanTakeAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const RowStep& step : std::vector<RowStep>{
           {.scale = {0}},
           {.scale = {1e-60}},
           {.scale = {nan}},
           {.loc = {1e300}},
           {.scale = {1, 2}, .loc = {1, 2, 3}},
           {.scale = {}},
           {.kind = Kind::kClip, .low = 1, .high = 0},
           {.kind = Kind::kClip, .low = nan, .high = 0},
           {.kind = Kind::kCrop},
           {.kind = Kind::kCrop, .top = -1, .height = 1, .width = 1},
           {.kind = Kind::kCrop, .top = 1, .height = INT64_MAX, .width = 1},
           {.kind = Kind::kCrop, .left = INT64_MAX, .height = 1, .width = 1},
           {.kind = Kind::kCast, .dtype = DType::kUInt64}}) {
    EXPECT_THAT(MakeRowStep(step), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("MakeRowStep: ")));
  }
}

}  // namespace
}  // namespace rill
