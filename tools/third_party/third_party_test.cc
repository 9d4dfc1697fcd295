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
#include "zlib.h"
#include "zstd.h"

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
  // The line "philox4x32 10" with zero key and counter of upstream's
  // kat_vectors.
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

TEST(ZlibTest, InflatesWhatItDeflated) {
  std::string text(100000, 'x'), packed(1000, '\0'), again(text.size(), '\0');
  const auto bytes = [](std::string& of) {
    return reinterpret_cast<Bytef*>(of.data());
  };
  z_stream out = {};
  ASSERT_EQ(deflateInit(&out, Z_DEFAULT_COMPRESSION), Z_OK);
  out.next_in = bytes(text);
  out.avail_in = static_cast<uInt>(text.size());
  out.next_out = bytes(packed);
  out.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&out, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(deflateEnd(&out), Z_OK);
  z_stream in = {};
  ASSERT_EQ(inflateInit(&in), Z_OK);
  in.next_in = bytes(packed);
  in.avail_in = static_cast<uInt>(out.total_out);
  in.next_out = bytes(again);
  in.avail_out = static_cast<uInt>(again.size());
  EXPECT_EQ(inflate(&in, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(inflateEnd(&in), Z_OK);
  EXPECT_TRUE(again == text);
}

TEST(ZstdTest, DecompressesWhatItCompressed) {
  const std::string text(100000, 'x');
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(),
                                    text.size(), ZSTD_CLEVEL_DEFAULT);
  ASSERT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  EXPECT_LT(size, 1000u);
  std::string again(text.size(), '\0');
  EXPECT_EQ(ZSTD_decompress(again.data(), again.size(), packed.data(), size),
            text.size());
  EXPECT_TRUE(again == text);
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
