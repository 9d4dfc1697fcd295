// SPDX-License-Identifier: Apache-2.0

// One use of each third-party library, as Rill uses it.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "Eigen/Core"
#include "Random123/philox.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rill/tools/third_party/simd_proof.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HighwayTest, DispatchesAtRunTime) {
  std::vector<float> x(67);
  std::iota(x.begin(), x.end(), 0.0f);
  // Small integers: exact in any order of summing.
  EXPECT_EQ(SimdSum(x.data(), static_cast<int64_t>(x.size())), 67 * 66 / 2);
  EXPECT_NE(std::string(SimdTarget()), "");
}

TEST(Random123Test, PhiloxGivesItsKnownAnswer) {
  // The line "philox4x32 10" with zero key and counter of upstream's kat_vectors.
  const auto words = r123::Philox4x32()({{0, 0, 0, 0}}, {{0, 0}});
  EXPECT_THAT(std::vector<uint32_t>(words.begin(), words.end()),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
}

TEST(JsonTest, ReportsBadInputWithoutThrowing) {
  const auto good = nlohmann::json::parse(R"({"shape": [4, 2]})", nullptr,
                                          /*allow_exceptions=*/false);
  ASSERT_FALSE(good.is_discarded());
  EXPECT_THAT(good["shape"], ElementsAre(4, 2));
  EXPECT_TRUE(nlohmann::json::parse("{\"shape\": [", nullptr,
                                    /*allow_exceptions=*/false)
                  .is_discarded());
}

TEST(EigenTest, MultipliesFixedSizes) {
  Eigen::Matrix2f a;
  a << 1, 2, 3, 4;
  const Eigen::Vector2f y = a * Eigen::Vector2f(1, 1);
  EXPECT_THAT(std::vector<float>(y.begin(), y.end()), ElementsAre(3, 7));
}

TEST(AbseilTest, StatusCarriesItsMessage) {
  const absl::StatusOr<int> broken = absl::OutOfRangeError("slot 7");
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(broken.status().ToString(), HasSubstr("slot 7"));
}

}  // namespace
}  // namespace rill
