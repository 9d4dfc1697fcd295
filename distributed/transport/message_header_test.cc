// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/message_header.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/distributed/transport/value_limits.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MessageHeaderTest, ValuesAreJsonThatAnyProgramReads) {
  MessageHeader header;
  header.values.Set("count", int64_t{256});
  header.values.Set("beta", 1.0);
  header.values.Set("table", std::string("two\nlines"));
  header.values.Set("slots", std::vector<int64_t>{1, 2});
  header.timeout = absl::Milliseconds(2500);
  header.batch_shape = Shape({4, 2});
  header.dim_names = {"lanes", "time"};
  EXPECT_THAT(
      EncodeMessageHeader(header),
      IsOkAndHolds(Eq(R"({"values":{"count":256,"beta":1.0,)"
                      R"("table":"two\nlines","slots":[1,2]},)"
                      R"("batch_shape":[4,2],"dim_names":["lanes","time"],)"
                      R"("timeout_s":2.5})")));
}

TEST(MessageHeaderTest, TimesAreAddedWhenTheyAreKnown) {
  RILL_ASSERT_OK_AND_ASSIGN(std::string text, EncodeMessageHeader({}));
  AddHeaderTimes(absl::InfiniteDuration(), absl::Seconds(3), &text);
  EXPECT_EQ(text, R"({"values":{},"sent_s":3.0})");
  RILL_ASSERT_OK_AND_ASSIGN(text, EncodeMessageHeader({}));
  AddHeaderTimes(absl::Seconds(-1), absl::Seconds(3), &text);
  EXPECT_EQ(text, R"({"values":{},"timeout_s":-1.0,"sent_s":3.0})");
}

TEST(MessageHeaderTest, EverythingComesBack) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  MessageHeader header;
  header.values = SavedState("Type", 2);
  header.values.Set("min", std::numeric_limits<int64_t>::min());
  header.values.Set("max", std::numeric_limits<int64_t>::max());
  header.values.Set("inf", kInf);
  header.values.Set("whole", 3.0);
  header.values.Set("zero", -0.0);
  header.values.Set("tiny", 5e-324);
  header.values.Set("doubles", std::vector<double>{1, -kInf, kInf, 0.1});
  header.values.Set("no ints", std::vector<int64_t>{});
  header.values.Set("no doubles", std::vector<double>{});
  header.values.Set("no parts", std::vector<SavedState>{});
  header.values.Set("\xc3\xa4", std::string("\0\xff", 2));
  header.values.Set("text", std::string("nan \xc3\xa4 \"{}"));
  header.values.Set("empty", std::string());
  SavedState part("Part", 1);
  part.SetPart("inner", SavedState());
  header.values.Set("parts", std::vector<SavedState>{part, SavedState()});
  header.timeout = absl::Seconds(3);
  header.sent = absl::Milliseconds(1500);
  header.batch_shape = Shape{};
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            EncodeMessageHeader(header));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                            DecodeMessageHeader(text));
  EXPECT_EQ(read.values.Encode(), header.values.Encode());
  EXPECT_EQ(read.timeout, header.timeout);
  EXPECT_EQ(read.sent, header.sent);
  EXPECT_EQ(read.batch_shape, header.batch_shape);
  RILL_EXPECT_OK(read.error);
}

TEST(MessageHeaderTest, TimesWithoutAnEndAreNumbers) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      EncodeMessageHeader({.timeout = -absl::InfiniteDuration(),
                           .sent = absl::InfiniteDuration()}));
  RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                            DecodeMessageHeader(text));
  EXPECT_EQ(read.timeout, -absl::InfiniteDuration());
  EXPECT_EQ(read.sent, absl::InfiniteDuration());
}

TEST(MessageHeaderTest, NotANumberComesBack) {
  MessageHeader header;
  header.values.Set("nan", std::nan(""));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            EncodeMessageHeader(header));
  RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                            DecodeMessageHeader(text));
  RILL_ASSERT_OK_AND_ASSIGN(const auto nan, read.values.Get<double>("nan"));
  EXPECT_TRUE(std::isnan(nan));
}

TEST(MessageHeaderTest, ErrorsComeBackByName) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status error(static_cast<absl::StatusCode>(code), "why: \"x\"");
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                              EncodeMessageHeader({.error = error}));
    EXPECT_THAT(text, HasSubstr(absl::StatusCodeToString(error.code())));
    RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                              DecodeMessageHeader(text));
    EXPECT_EQ(read.error, error);
  }
  // A text of other bytes arrives changed, but as an error.
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      EncodeMessageHeader({.error = absl::InternalError("a\xff")}));
  RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                            DecodeMessageHeader(text));
  EXPECT_EQ(read.error.code(), absl::StatusCode::kInternal);
}

TEST(MessageHeaderTest, NamesThatAreNoUtf8AreRefused) {
  MessageHeader header;
  header.values.Set("a\xff", int64_t{1});
  EXPECT_THAT(EncodeMessageHeader(header),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

SavedState Wide(int64_t count) {
  SavedState state("Wide", 1);
  for (int64_t i = 0; i < count; ++i) state.Set(absl::StrCat(i), i);
  return state;
}

SavedState Deep(int64_t depth) {
  SavedState state;
  for (int64_t i = 1; i < depth; ++i) {
    SavedState outer;
    outer.SetPart("a", std::move(state));
    state = std::move(outer);
  }
  return state;
}

// JSON of the same, without the limits.
std::string WideText(int64_t count) {
  std::string text = R"({"values":{"":["Wide",1])";
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&text, ",\"", i, "\":1");
  return text + "}}";
}
std::string DeepText(int64_t depth) {
  std::string text = R"({"values":{)";
  for (int64_t i = 1; i < depth; ++i) text += R"("a":[{)";
  for (int64_t i = 1; i < depth; ++i) text += "}]";
  return text + "}}";
}

TEST(MessageHeaderTest, BothSidesStopAtTheSameLimitsOfValues) {
  for (const SavedState& most : {Wide(kMaxValues), Deep(kMaxValueDepth)}) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                              EncodeMessageHeader({.values = most}));
    RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                              DecodeMessageHeader(text));
    EXPECT_EQ(read.values.Encode(), most.Encode());
  }
  RILL_EXPECT_OK(DecodeMessageHeader(WideText(kMaxValues)).status());
  RILL_EXPECT_OK(DecodeMessageHeader(DeepText(kMaxValueDepth)).status());
  constexpr auto kWrong = absl::StatusCode::kInvalidArgument;
  const auto too_many = HasSubstr("got 4097 in one");
  EXPECT_THAT(EncodeMessageHeader({.values = Wide(kMaxValues + 1)}),
              StatusIs(kWrong, too_many));
  EXPECT_THAT(DecodeMessageHeader(WideText(kMaxValues + 1)),
              StatusIs(kWrong, too_many));
  EXPECT_THAT(EncodeMessageHeader({.values = Deep(kMaxValueDepth + 1)}),
              StatusIs(kWrong, HasSubstr("16 states in one another")));
  EXPECT_THAT(DecodeMessageHeader(DeepText(kMaxValueDepth + 1)),
              StatusIs(kWrong, HasSubstr("at most 16 in one another")));
}

TEST(MessageHeaderTest, BothSidesStopAtTheSameBytesAndNames) {
  MessageHeader large;
  large.values.Set("x", std::string(kMaxHeaderBytes, 'x'));
  const auto too_long = StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("bytes, want at most 16777216"));
  EXPECT_THAT(EncodeMessageHeader(large).status(), too_long);
  EXPECT_THAT(DecodeMessageHeader(std::string(kMaxHeaderBytes + 1, ' ')),
              too_long);
  RILL_EXPECT_OK(
      DecodeMessageHeader("{}" + std::string(kMaxHeaderBytes - 2, ' ')));
  // The header and "values", "parts", and the two times.
  const auto crowd = [](int64_t names) {
    const SavedState one;
    MessageHeader header;
    header.values.Set(
        "parts", std::vector<SavedState>(static_cast<size_t>(names - 6), one));
    return header;
  };
  RILL_ASSERT_OK_AND_ASSIGN(std::string text,
                            EncodeMessageHeader(crowd(kMaxHeaderNames)));
  AddHeaderTimes(-absl::Seconds(1.0 / 3), absl::Seconds(1e9 / 3), &text);
  RILL_EXPECT_OK(DecodeMessageHeader(text).status());
  EXPECT_THAT(EncodeMessageHeader(crowd(kMaxHeaderNames + 1)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 65537 objects and names")));
  text.back() = ',';
  EXPECT_THAT(DecodeMessageHeader(text + R"("x":1})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("their keys: want at most 65536")));
  // The same before it costs anything.
  std::string objects = R"({"x":[{})";
  while (objects.size() < kMaxHeaderBytes - 5) objects += ",{}";
  EXPECT_THAT(DecodeMessageHeader(objects + "]}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("their keys: want at most 65536")));
}

TEST(MessageHeaderTest, ALongErrorLosesItsEnd) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      EncodeMessageHeader(
          {.error = absl::NotFoundError(std::string(kMaxHeaderBytes, '\1'))}));
  RILL_ASSERT_OK_AND_ASSIGN(const MessageHeader read,
                            DecodeMessageHeader(text));
  EXPECT_EQ(read.error, absl::NotFoundError(std::string(64 << 10, '\1')));
}

TEST(MessageHeaderTest, ErrorsShowOfAHostileNameWhatIsShort) {
  const absl::Status status =
      DecodeMessageHeader(absl::StrCat(R"({"values":{"\u0000\n)",
                                       std::string(1000, 'x'), R"(":null}})"))
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr(R"(value "\u0000\nxxx)")));
  EXPECT_LT(status.message().size(), 300);
}

TEST(MessageHeaderTest, OfANameThatComesTwiceTheLastValueCounts) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const MessageHeader read,
      DecodeMessageHeader(R"({"values":{"a":1,"b":2,"a":"x"}})"));
  SavedState want;
  want.Set("a", std::string("x"));
  want.Set("b", int64_t{2});
  EXPECT_EQ(read.values.Encode(), want.Encode());
}

TEST(MessageHeaderTest, HostileTextsAreRefused) {
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
    EXPECT_THAT(DecodeMessageHeader(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text.substr(0, 100);
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const MessageHeader read,
      DecodeMessageHeader(
          R"({"values":{"a":[1,2.5]},"timeout_s":-1e300,"x":0})"));
  EXPECT_EQ(read.timeout, -absl::InfiniteDuration());
  RILL_ASSERT_OK_AND_ASSIGN(const auto doubles, read.values.Doubles("a"));
  EXPECT_THAT(doubles, ElementsAre(1, 2.5));
}

}  // namespace
}  // namespace rill
