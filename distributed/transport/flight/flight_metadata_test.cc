// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_metadata.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill::flight_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FlightMetadataTest, ValuesAreJsonThatAnyProgramReads) {
  FlightMetadata metadata;
  metadata.values.Set("count", int64_t{256});
  metadata.values.Set("beta", 1.0);
  metadata.values.Set("table", std::string("two\nlines"));
  metadata.values.Set("slots", std::vector<int64_t>{1, 2});
  metadata.timeout = absl::Milliseconds(2500);
  metadata.batch_shape = Shape({4, 2});
  metadata.dim_names = {"lanes", "time"};
  EXPECT_THAT(
      EncodeMetadata(metadata),
      IsOkAndHolds(Eq(R"({"values":{"count":256,"beta":1.0,)"
                      R"("table":"two\nlines","slots":[1,2]},"timeout_s":2.5,)"
                      R"("batch_shape":[4,2],"dim_names":["lanes","time"]})")));
}

TEST(FlightMetadataTest, EverythingComesBack) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  FlightMetadata metadata;
  metadata.values = SavedState("Type", 2);
  metadata.values.Set("min", std::numeric_limits<int64_t>::min());
  metadata.values.Set("max", std::numeric_limits<int64_t>::max());
  metadata.values.Set("inf", kInf);
  metadata.values.Set("whole", 3.0);
  metadata.values.Set("zero", -0.0);
  metadata.values.Set("tiny", 5e-324);
  metadata.values.Set("doubles", std::vector<double>{1, -kInf, kInf, 0.1});
  metadata.values.Set("no ints", std::vector<int64_t>{});
  metadata.values.Set("no doubles", std::vector<double>{});
  metadata.values.Set("no parts", std::vector<SavedState>{});
  metadata.values.Set("\xc3\xa4", std::string("\0\xff", 2));
  metadata.values.Set("text", std::string("nan \xc3\xa4 \"{}"));
  metadata.values.Set("empty", std::string());
  SavedState part("Part", 1);
  part.SetPart("inner", SavedState());
  metadata.values.Set("parts", std::vector<SavedState>{part, SavedState()});
  metadata.timeout = absl::Seconds(3);
  metadata.sent = absl::Milliseconds(1500);
  metadata.batch_shape = Shape{};
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, EncodeMetadata(metadata));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  RILL_ASSERT_OK_AND_ASSIGN(const FlightMetadata read, DecodeMetadata(text));
  EXPECT_EQ(read.values.Encode(), metadata.values.Encode());
  EXPECT_EQ(read.timeout, metadata.timeout);
  EXPECT_EQ(read.sent, metadata.sent);
  EXPECT_EQ(read.batch_shape, metadata.batch_shape);
  RILL_EXPECT_OK(read.error);
}

TEST(FlightMetadataTest, NotANumberComesBack) {
  FlightMetadata metadata;
  metadata.values.Set("nan", std::nan(""));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, EncodeMetadata(metadata));
  RILL_ASSERT_OK_AND_ASSIGN(const FlightMetadata read, DecodeMetadata(text));
  RILL_ASSERT_OK_AND_ASSIGN(const auto nan, read.values.Get<double>("nan"));
  EXPECT_TRUE(std::isnan(nan));
}

TEST(FlightMetadataTest, ErrorsComeBackByName) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status error(static_cast<absl::StatusCode>(code), "why: \"x\"");
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                              EncodeMetadata({.error = error}));
    EXPECT_THAT(text, HasSubstr(absl::StatusCodeToString(error.code())));
    RILL_ASSERT_OK_AND_ASSIGN(const FlightMetadata read, DecodeMetadata(text));
    EXPECT_EQ(read.error, error);
  }
  // A text of other bytes arrives changed, but as an error.
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      EncodeMetadata({.error = absl::InternalError("a\xff")}));
  RILL_ASSERT_OK_AND_ASSIGN(const FlightMetadata read, DecodeMetadata(text));
  EXPECT_EQ(read.error.code(), absl::StatusCode::kInternal);
}

TEST(FlightMetadataTest, NamesThatAreNoUtf8AreRefused) {
  FlightMetadata metadata;
  metadata.values.Set("a\xff", int64_t{1});
  EXPECT_THAT(EncodeMetadata(metadata),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FlightMetadataTest, HostileTextsAreRefused) {
  std::string wide = "{\"values\":{";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&wide, "\"", i, "\":1,");
  wide += "\"x\":1}}";
  std::string deep = "{\"values\":";
  for (int i = 0; i < 20; ++i) deep += "{\"a\":[";
  for (int i = 0; i < 20; ++i) deep += "]}";
  const std::vector<std::string> texts = {
      "",
      "{",
      "[]",
      "1",
      "null",
      "\xff",
      "{\"values\":[]}",
      wide,
      deep + "}",
      std::string(1 << 20, '['),
      R"({"values":{"a":null}})",
      R"({"values":{"a":true}})",
      R"({"values":{"a":18446744073709551615}})",
      R"({"values":{"a":[1,"x"]}})",
      R"({"values":{"a":[1,{}]}})",
      R"({"values":{"a":{}}})",
      R"({"values":{"a":{"b":1}}})",
      R"({"values":{"a":{"base64":"*"}}})",
      R"({"values":{"a":{"double":"big"}}})",
      R"({"values":{"":["x"]}})",
      R"({"values":{"":[1,"x"]}})",
      R"({"timeout_s":"1"})",
      R"({"batch_shape":2})",
      R"({"batch_shape":[-1]})",
      R"({"batch_shape":[1e3]})",
      R"({"batch_shape":[1,1,1,1,1,1,1,1,1]})",
      R"({"batch_shape":[9223372036854775807,9223372036854775807]})",
      R"({"dim_names":[1]})",
      R"({"error":{}})",
      R"({"error":"x"})",
      R"({"error":{"code":"OK","message":""}})",
      R"({"error":{"code":3,"message":""}})"};
  for (const std::string& text : texts) {
    EXPECT_THAT(DecodeMetadata(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text.substr(0, 100);
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const FlightMetadata read,
      DecodeMetadata(R"({"values":{"a":[1,2.5]},"timeout_s":-1e300,"x":0})"));
  EXPECT_EQ(read.timeout, -absl::InfiniteDuration());
  RILL_ASSERT_OK_AND_ASSIGN(const auto doubles, read.values.Doubles("a"));
  EXPECT_THAT(doubles, ElementsAre(1, 2.5));
}

}  // namespace
}  // namespace rill::flight_internal
