// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/statistics/vec_norm_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/instruction_sets.h"

namespace rill::transforms_internal {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

using Words = std::vector<int64_t>;

Words WordsOf(const VecNormSums& sums) {
  Words words = {sums.window};
  words.insert(words.end(), std::begin(sums.digits), std::end(sums.digits));
  words.insert(words.end(), std::begin(sums.square_digits),
               std::end(sums.square_digits));
  return words;
}

std::vector<size_t> Rows(size_t count) {
  std::vector<size_t> rows(count);
  std::iota(rows.begin(), rows.end(), size_t{0});
  return rows;
}

template <typename T>
VecNormSums SumsOf(const std::vector<T>& numbers) {
  VecNormSums sums;
  for (size_t begin = 0; begin < numbers.size(); begin += kVecNormBlock) {
    const size_t count = std::min(kVecNormBlock, numbers.size() - begin);
    AddRows(&numbers[begin], 1, Rows(count), &sums);
  }
  return sums;
}

// Numbers of many magnitudes, of both signs.
template <typename T>
std::vector<T> Mixed(int exponents, size_t count, std::mt19937_64* random) {
  std::vector<T> numbers;
  while (numbers.size() < count) {
    const double digits =
        std::ldexp(static_cast<double>(static_cast<int64_t>((*random)())), -63);
    const int exponent =
        static_cast<int>((*random)() % static_cast<uint64_t>(2 * exponents)) -
        exponents;
    numbers.push_back(static_cast<T>(std::ldexp(digits, exponent)));
  }
  return numbers;
}

template <typename T>
void ExpectOneResult(int exponents) {
  std::mt19937_64 random(exponents);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<T> numbers = Mixed<T>(exponents, 700, &random);
    const Words want = WordsOf(SumsOf(numbers));
    std::shuffle(numbers.begin(), numbers.end(), random);
    std::vector<VecNormSums> parts(1 + random() % 9);
    for (size_t begin = 0; begin < numbers.size();) {
      const size_t count =
          std::min(1 + random() % kVecNormBlock, numbers.size() - begin);
      AddRows(&numbers[begin], 1, Rows(count), &parts[random() % parts.size()]);
      begin += count;
    }
    while (parts.size() > 1) {
      std::swap(parts.back(), parts[random() % parts.size()]);
      const VecNormSums last = parts.back();
      parts.pop_back();
      MergeSums(last, &parts[random() % parts.size()]);
    }
    EXPECT_THAT(WordsOf(parts[0]), ElementsAreArray(want)) << trial;
  }
}

TEST(VecNormSumsTest, AnyOrderAndPartsGiveTheSameBits) {
  ForEachTarget([] {
    ExpectOneResult<float>(1);
    ExpectOneResult<float>(60);
    ExpectOneResult<float>(126);
    ExpectOneResult<double>(1);
    ExpectOneResult<double>(40);
    ExpectOneResult<double>(490);
  });
}

// Numbers at the edges of digits and windows are rounded to even there.
TEST(VecNormSumsTest, HalvesAndPowersOfTwoGiveTheSameBitsInAnyOrder) {
  std::vector<double> numbers;
  for (int exponent = -60; exponent <= 60; ++exponent) {
    for (const double factor : {1.0, -1.0, 1.5, 1 + 0x1p-52, -1 + 0x1p-53}) {
      numbers.push_back(std::ldexp(factor, exponent));
    }
  }
  const Words want = WordsOf(SumsOf(numbers));
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_THAT(WordsOf(SumsOf(numbers)), ElementsAreArray(want));
  VecNormSums merged;
  for (const double number : numbers) {
    MergeSums(SumsOf(std::vector<double>{number}), &merged);
  }
  EXPECT_THAT(WordsOf(merged), ElementsAreArray(want));
}

TEST(VecNormSumsTest, EveryInstructionSetGivesTheSameBits) {
  std::mt19937_64 random(5);
  const std::vector<double> numbers = Mixed<double>(30, 1000, &random);
  std::vector<Words> all;
  ForEachTarget([&] { all.push_back(WordsOf(SumsOf(numbers))); });
  EXPECT_THAT(all, Each(ElementsAreArray(all[0])));
}

TEST(VecNormSumsTest, RowsAreThoseThatAreListed) {
  const std::vector<float> in = {1, 10, 2, 20, 3, 30, 4, 40};
  std::vector<VecNormSums> sums(2);
  AddRows(in.data(), 2, {0, 3}, sums.data());
  EXPECT_THAT(WordsOf(sums[0]),
              ElementsAreArray(WordsOf(SumsOf<float>({4, 1}))));
  EXPECT_THAT(WordsOf(sums[1]),
              ElementsAreArray(WordsOf(SumsOf<float>({10, 40}))));
}

// Mean and deviation in two passes of 64 bits of precision.
struct Reference {
  explicit Reference(const std::vector<double>& numbers) {
    const auto n = static_cast<long double>(numbers.size());
    for (const double number : numbers) mean += number;
    mean /= n;
    for (const double number : numbers) {
      deviation += (number - mean) * (number - mean);
      largest = std::max(largest, std::abs(number));
    }
    deviation = std::sqrt(deviation / n);
  }
  long double mean = 0;
  long double deviation = 0;
  double largest = 0;
};

TEST(VecNormSumsTest, MeanAndDeviationAreThoseOfAllNumbers) {
  std::mt19937_64 random(7);
  for (const double center : {0., 1., -1e6, 1e9, 1e-8, 1e100, -1e-100}) {
    for (const double spread : {0., 1e-12, 1e-3, 1.}) {
      std::uniform_real_distribution<double> noise(-1, 1);
      std::vector<double> numbers;
      for (int i = 0; i < 2000; ++i) {
        numbers.push_back(center == 0 ? spread * noise(random)
                                      : center * (1 + spread * noise(random)));
      }
      const Reference want(numbers);
      const VecNormElement got = StatisticsOf(SumsOf(numbers), 2000);
      const double bound = 0x1p-50 * want.largest;
      EXPECT_LE(std::abs(got.mean - want.mean), bound) << center;
      EXPECT_LE(std::abs(std::sqrt(got.squares / 2000) - want.deviation), bound)
          << center << " " << spread;
      // Double's own rounding, wherever numbers differ by more than a part in
      // 2^20.
      if (spread >= 1e-3) {
        EXPECT_NEAR(
            static_cast<double>(std::sqrt(got.squares / 2000) / want.deviation),
            1, 1e-14);
      }
    }
  }
}

// Where sums of squares in double would lose all digits.
TEST(VecNormSumsTest, SmallDeviationsOfLargeNumbersKeepTheirDigits) {
  std::vector<double> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(1e9 + 0x1p-10 * (i % 2));
  const VecNormElement got = StatisticsOf(SumsOf(numbers), 1000);
  EXPECT_DOUBLE_EQ(got.mean, 1e9 + 0x1p-11);
  EXPECT_NEAR(std::sqrt(got.squares / 1000), 0x1p-11, 1e-12);
}

template <typename T>
void ExpectNoPlaceOverlooked(T largest, const std::vector<T>& unfit) {
  std::vector<T> in(37, largest);
  ForEachTarget([&] {
    EXPECT_TRUE(AreSummable(in.data(), 1, Rows(in.size())));
    for (T& number : in) {
      for (const T bad : unfit) {
        const T good = std::exchange(number, bad);
        EXPECT_FALSE(AreSummable(in.data(), 1, Rows(in.size()))) << bad;
        number = good;
      }
    }
  });
}

TEST(VecNormSumsTest, NoPlaceOfABlockIsOverlooked) {
  const float infinity = std::numeric_limits<float>::infinity();
  ExpectNoPlaceOverlooked<float>(std::numeric_limits<float>::max(),
                                 {infinity, -infinity, std::nanf("")});
  const double above = std::nextafter(kMostVecNormValue, infinity);
  ExpectNoPlaceOverlooked<double>(
      kMostVecNormValue,
      {above, -above, double{infinity}, -double{infinity}, std::nan("")});
}

TEST(VecNormSumsTest, NumbersAreSummableUpToTheLargest) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = kMostVecNormValue;
  const std::vector<double> in = {largest, -largest,     infinity,     0,
                                  0,       -2 * largest, std::nan(""), 1};
  ForEachTarget([&in] {
    EXPECT_TRUE(AreSummable(in.data(), 2, {0}));
    for (const size_t row : {1, 2, 3}) {
      EXPECT_FALSE(AreSummable(in.data(), 2, {0, row})) << row;
    }
  });
  const std::vector<double> ends = {largest, -largest, largest, largest};
  const VecNormSums sums = SumsOf(ends);
  EXPECT_EQ(sums.window, kVecNormWindows - 1);
  const VecNormElement got = StatisticsOf(sums, 4);
  EXPECT_EQ(got.mean, largest / 2);
  EXPECT_EQ(got.squares, 3 * largest * largest);
  const VecNormElement none = StatisticsOf(SumsOf<double>({0, -0., 0}), 3);
  EXPECT_EQ(none.mean, 0);
  EXPECT_EQ(none.squares, 0);
}

}  // namespace
}  // namespace rill::transforms_internal
