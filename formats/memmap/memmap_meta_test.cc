// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_meta.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {
namespace {

using ::testing::HasSubstr;

constexpr char kType[] = R"("_type":"<class 'tensordict._td.TensorDict'>")";

absl::StatusOr<MemmapMeta> Parse(absl::string_view text) {
  return ParseMemmapMeta("Load: dir/meta.json", text);
}
absl::StatusOr<MemmapMeta> ParseLeaf(absl::string_view leaf) {
  return Parse(absl::StrCat(R"({"x":)", leaf, R"(,"shape":[3],)", kType, "}"));
}

TEST(MemmapMetaTest, TextIsThePeersByteForByte) {
  MemmapMeta meta;
  meta.batch_shape = {3};
  meta.entries.push_back(
      {.name = "obs", .dtype = DType::kFloat32, .shape = {3, 2}, .type = ""});
  meta.entries.push_back({.name = "next", .is_leaf = false, .shape = {}});
  meta.entries.push_back(
      {.name = "a/b c", .dtype = DType::kBFloat16, .shape = {3, 0}});
  EXPECT_THAT(
      FormatMemmapMeta("Save", meta),
      IsOkAndHolds(absl::StrCat(
          R"({"obs":{"device":"cpu","shape":[3,2],"dtype":"torch.float32",)",
          R"("is_nested":false},"next":{"type":"TensorDict"},)",
          R"("a/b c":{"device":"cpu","shape":[3,0],"dtype":"torch.bfloat16",)",
          R"("is_nested":false},"shape":[3],"device":"cpu",)", kType, "}")));
}

TEST(MemmapMetaTest, ReadsBothKindsOfWhitespaceAndAnyOrder) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const MemmapMeta meta,
      Parse("{\"shape\": [3, 1], \"_type\": \"<class "
            "'tensordict._td.TensorDict'>\", \"device\": \"None\", \"z\": "
            "{\"shape\": [3, 1], \"dtype\": \"torch.int64\"}, \"note\": 7, "
            "\"a\": {\"type\": \"Anything\"}}"));
  EXPECT_EQ(meta.batch_shape, (Shape{3, 1}));
  ASSERT_EQ(meta.entries.size(), 2);
  EXPECT_EQ(meta.entries[0].name, "z");
  EXPECT_EQ(meta.entries[0].dtype, DType::kInt64);
  EXPECT_EQ(meta.entries[1].name, "a");
  EXPECT_FALSE(meta.entries[1].is_leaf);
}

TEST(MemmapMetaTest, ValuesGoThroughAsJson) {
  MemmapMeta meta;
  meta.kind = MemmapMeta::Kind::kValue;
  meta.json = R"({"b":[1,null],"a":"x"})";
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            FormatMemmapMeta("Save", meta));
  EXPECT_EQ(text,
            "{\"_type\":\"<class 'tensordict.tensorclass.NonTensorData'>\","
            "\"data\":{\"b\":[1,null],\"a\":\"x\"},\"_is_non_tensor\":true,"
            "\"_metadata\":null}");
  RILL_ASSERT_OK_AND_ASSIGN(const MemmapMeta back, Parse(text));
  EXPECT_EQ(back.kind, MemmapMeta::Kind::kValue);
  EXPECT_EQ(back.json, meta.json);
}

TEST(MemmapMetaTest, EveryTypeOfThePeerIsTold) {
  using Kind = MemmapMeta::Kind;
  RILL_ASSERT_OK_AND_ASSIGN(
      MemmapMeta meta,
      Parse(R"({"_type":"<class 'tensordict.tensorclass.NonTensorData'>",)"
            R"("_is_non_tensor":true,"_metadata":null})"));
  EXPECT_EQ(meta.kind, Kind::kValue);
  EXPECT_EQ(meta.pickle, "other.pickle");

  constexpr absl::string_view kStack =
      R"({"_type":"<class 'tensordict.tensorclass.NonTensorStack'>",)"
      R"("stack_dim":0,"device":null,"data":)";
  RILL_ASSERT_OK_AND_ASSIGN(meta, Parse(absl::StrCat(kStack, R"(["p","q"]})")));
  EXPECT_EQ(meta.kind, Kind::kValueStack);
  EXPECT_EQ(meta.json, R"(["p","q"])");
  EXPECT_THAT(FormatMemmapMeta("Save", meta),
              IsOkAndHolds(absl::StrCat(kStack, R"(["p","q"]})")));
  RILL_ASSERT_OK_AND_ASSIGN(meta,
                            Parse(absl::StrCat(kStack, "\"pickle.pkl\"}")));
  EXPECT_EQ(meta.pickle, "pickle.pkl");
  EXPECT_THAT(Parse(absl::StrCat(kStack, "\"../x.pkl\"}")),
              IsDataLoss("want a list"));

  constexpr absl::string_view kLazy =
      R"({"_type":"<class 'tensordict._lazy.LazyStackedTensorDict'>",)";
  RILL_ASSERT_OK_AND_ASSIGN(meta,
                            Parse(absl::StrCat(kLazy, R"("stack_dim":1})")));
  EXPECT_EQ(meta.kind, Kind::kLazyStack);
  EXPECT_EQ(meta.stack_dim, 1);
  EXPECT_THAT(FormatMemmapMeta("Save", meta),
              IsOkAndHolds(absl::StrCat(kLazy, R"("stack_dim":1})")));
  for (const absl::string_view dim : {"-1", "9", "1.5", "\"0\"", "null"}) {
    EXPECT_THAT(Parse(absl::StrCat(kLazy, "\"stack_dim\":", dim, "}")),
                IsDataLoss("stack_dim"));
  }

  RILL_ASSERT_OK_AND_ASSIGN(
      meta, Parse(R"({"_type":"<class 'm.C'>","n":[1],"s":"x"})"));
  EXPECT_EQ(meta.kind, Kind::kOther);
  EXPECT_EQ(meta.type, "\"<class 'm.C'>\"");
  ASSERT_EQ(meta.fields.size(), 2);
  EXPECT_EQ(meta.fields[0].first, "n");
  EXPECT_EQ(meta.fields[1].second, "\"x\"");

  RILL_ASSERT_OK_AND_ASSIGN(
      meta,
      ParseLeaf(R"({"shape":[3,1],"dtype":"torch.int8","is_nested":true})"));
  EXPECT_TRUE(meta.entries[0].is_ragged);
  EXPECT_THAT(
      ParseLeaf(R"({"shape":[3],"dtype":"torch.int8","is_nested":true})"),
      IsDataLoss("table"));
}

TEST(MemmapMetaTest, BrokenFilesAreDataLoss) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("{}"),
        absl::StrCat("{", kType, "}"),
        absl::StrCat(R"({"shape":3,)", kType, "}"),
        absl::StrCat(R"({"shape":[1.5],)", kType, "}"),
        std::string(R"({"shape":[3],"_type":7})")}) {
    EXPECT_THAT(Parse(text), IsDataLoss("dir/meta.json")) << text;
  }
  EXPECT_THAT(ParseLeaf(R"({"shape":[3]})"), IsDataLoss("\"x\""));
}

TEST(MemmapMetaTest, RefusesWhatWeDoNotHave) {
  for (const absl::string_view dtype :
       {"torch.complex32", "torch.qint8", "torch.float8_e4m3fn", "float32"}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const MemmapMeta meta,
        ParseLeaf(absl::StrCat(R"({"shape":[3],"dtype":")", dtype, "\"}")));
    EXPECT_THAT(meta.entries[0].refusal, HasSubstr(std::string(dtype)));
  }
  EXPECT_THAT(ParseLeaf(R"({"shape":[3,-1],"dtype":"torch.int8"})"),
              IsInvalidArgument("-1"));
  EXPECT_THAT(
      ParseLeaf(R"({"shape":[3,18446744073709551615],"dtype":"torch.int8"})"),
      IsInvalidArgument("2^63"));
  EXPECT_THAT(
      ParseLeaf(R"({"shape":[3,4294967296,4294967296],"dtype":"torch.int8"})"),
      IsInvalidArgument("4294967296"));
  EXPECT_THAT(
      ParseLeaf(R"({"shape":[3,1,1,1,1,1,1,1,1,1],"dtype":"torch.int8"})"),
      IsInvalidArgument("rank"));
}

TEST(MemmapMetaTest, CostsNeitherStackNorTime) {
  EXPECT_THAT(Parse(std::string(1 << 20, '[')), IsInvalidArgument("depth"));
  std::string many = "{";
  for (int i = 0; i < 300000; ++i) absl::StrAppend(&many, "\"", i, "\":1,");
  absl::StrAppend(&many, "\"shape\":[],", kType, "}");
  EXPECT_THAT(Parse(many),
              IsInvalidArgument("keys of one object: want at most"));
}

TEST(MemmapMetaTest, NamesAndValuesMustBeText) {
  MemmapMeta meta;
  meta.entries.push_back({.name = "\xFF", .shape = {}});
  EXPECT_THAT(FormatMemmapMeta("Save", meta), IsInvalidArgument("UTF-8"));
  meta = MemmapMeta();
  meta.kind = MemmapMeta::Kind::kValue;
  for (const std::string& json :
       {std::string("{"), std::string(), std::string("a\xFF"),
        std::string(100, '[') + std::string(100, ']')}) {
    meta.json = json;
    EXPECT_THAT(FormatMemmapMeta("Save", meta), IsInvalidArgument()) << json;
  }
}

}  // namespace
}  // namespace rill::formats_internal
