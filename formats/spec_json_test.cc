// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/spec_json.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/formats/test_dicts.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/specs/test_specs.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;

constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
Tensor Of(std::initializer_list<T> values) {
  return *Tensor::From<T>(absl::Span<const T>(values.begin(), values.size()),
                          {static_cast<int64_t>(values.size())});
}

// Every domain, and what is hard about numbers.
TensorDictSpec Everything() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("a\\/b \"é\"/x",
                          LeafSpec::Unbounded(DType::kComplex64, {2, 3})));
  RILL_EXPECT_OK(
      spec.Set("low", LeafSpec::Bounded(DType::kFloat32, {1}, -kInf, 0.1)));
  RILL_EXPECT_OK(
      spec.Set("zero", LeafSpec::Bounded(DType::kFloat64, {}, -0.0, 5e-324)));
  RILL_EXPECT_OK(spec.Set(
      "ints", *LeafSpec::Bounded(Of<int64_t>({INT64_MIN, 9007199254740993}),
                                 Of<int64_t>({0, INT64_MAX}))));
  RILL_EXPECT_OK(
      spec.Set("reals", *LeafSpec::Bounded(Of<float>({-INFINITY, -0.0f}),
                                           Of<float>({0.1f, INFINITY}))));
  RILL_EXPECT_OK(spec.Set("n", LeafSpec::Categorical(3)));
  RILL_EXPECT_OK(spec.SetMask(
      "n",
      *Tensor::From<bool>({true, false, true, false, true, true}, {2, 3})));
  RILL_EXPECT_OK(spec.Set("flag", LeafSpec::Binary({1})));
  RILL_EXPECT_OK(spec.Set("hot", LeafSpec::OneHot(2, DType::kFloat16, {3})));
  RILL_EXPECT_OK(spec.Set("multi", LeafSpec::MultiCategorical({2, 3})));
  RILL_EXPECT_OK(spec.Set("multi_hot", LeafSpec::MultiOneHot({2, 3})));
  RILL_EXPECT_OK(spec.SetNonTensor("note", {R"({"a":"\n"})"}));
  return spec;
}

absl::StatusOr<TensorDictSpec> RunExample(const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const std::string text, SpecToJson(spec));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec back, SpecFromJson(text));
  return back;
}

TEST(SpecJsonTest, Example) {
  EXPECT_THAT(RunExample(Everything()), IsOkAndHolds(Everything()));
}

// The page of the format has this text.
TEST(SpecJsonTest, BytesAreThoseOfThePage) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("observation",
                          LeafSpec::Bounded(DType::kFloat32, {2}, -kInf, 1)));
  RILL_ASSERT_OK(spec.Set("action", LeafSpec::OneHot(3)));
  RILL_ASSERT_OK(spec.SetMask("action", Of<bool>({true, false, true})));
  RILL_ASSERT_OK(spec.Set(
      "torque", *LeafSpec::Bounded(Of<float>({-1, -2}), Of<float>({1, 0.5}))));
  RILL_ASSERT_OK(spec.SetNonTensor("note", {"null"}));
  EXPECT_THAT(
      SpecToJson(spec),
      IsOkAndHolds(
          R"({"format":"rill_spec","version":1,"leaves":[)"
          R"({"key":"observation","dtype":"float32","shape":[2],)"
          R"("domain":"bounded","low":"-inf","high":1},)"
          R"({"key":"action","dtype":"bool","shape":[3],"domain":"one_hot",)"
          R"("n":3,"mask":{"shape":[3],"allowed":"101"}},)"
          R"({"key":"torque","dtype":"float32","shape":[2],)"
          R"("domain":"bounded","low":[-1,-2],"high":[1,0.5]}],)"
          R"("non_tensors":[{"key":"note","example":"null"}]})"));
  EXPECT_THAT(SpecToJson({}),
              IsOkAndHolds(R"({"format":"rill_spec","version":1,"leaves":[],)"
                           R"("non_tensors":[]})"));
}

TEST(SpecJsonTest, RandomSpecsComeBackAndTextsAreStable) {
  const Rng rng(5);
  int64_t leaves = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    const TensorDictSpec spec = RandomSpec(rng, i);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text, SpecToJson(spec));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec back, SpecFromJson(text));
    ASSERT_EQ(back, spec) << text;
    EXPECT_THAT(SpecToJson(back), IsOkAndHolds(text));
    leaves += static_cast<int64_t>(spec.leaves().size());
  }
  EXPECT_GT(leaves, 500);
}

TEST(SpecJsonTest, DoublesAreExact) {
  const Rng rng(6);
  for (uint64_t i = 0; i < 500; ++i) {
    double low = 0;
    const uint64_t bits = rng.Bits64(i, 0);
    std::memcpy(&low, &bits, sizeof(low));
    if (std::isnan(low)) continue;
    TensorDictSpec spec;
    RILL_ASSERT_OK(
        spec.Set("x", LeafSpec::Bounded(DType::kFloat64, {}, low, kInf)));
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text, SpecToJson(spec));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec back, SpecFromJson(text));
    EXPECT_EQ(back.Find("x")->low, low) << text;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec back,
                            RunExample(Everything()));
  EXPECT_TRUE(std::signbit(back.Find("zero")->low));
}

TEST(SpecJsonTest, WhiteSpaceAndOrderDoNotMatter) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDictSpec spec,
      SpecFromJson(R"({ "leaves" : [ {"domain": "categorical", "n": 4,
        "shape": [], "key": "a", "dtype": "int64"} ],
        "non_tensors": [], "version": 1, "format": "rill_spec" })"));
  EXPECT_EQ(*spec.Find("a"), LeafSpec::Categorical(4));
}

TEST(SpecJsonTest, EveryTruncationIsAStatus) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, SpecToJson(Everything()));
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(SpecFromJson(text.substr(0, size)), IsDataLoss()) << size;
  }
}

TEST(SpecJsonTest, EveryChangeIsASpecOrAStatus) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, SpecToJson(Everything()));
  const std::string alphabet = "0123456789[]{}\",:-.e\\\0\xFFtrueinf";
  const Rng rng(7);
  int read = 0;
  int refused = 0;
  const auto load = [&](const std::string& text) {
    const absl::StatusOr<TensorDictSpec> spec = SpecFromJson(text);
    if (!spec.ok()) {
      EXPECT_THAT(spec.status().code(),
                  AnyOf(absl::StatusCode::kDataLoss,
                        absl::StatusCode::kFailedPrecondition,
                        absl::StatusCode::kResourceExhausted))
          << spec.status();
      ++refused;
      return;
    }
    ++read;
    // A spec that was read can be written and used.
    RILL_ASSERT_OK_AND_ASSIGN(const std::string again, SpecToJson(*spec));
    EXPECT_THAT(SpecFromJson(again), IsOkAndHolds(*spec));
  };
  for (uint64_t round = 0; round < 600; ++round) {
    load(formats_internal::WithRandomEdits(whole, alphabet, rng, round));
  }
  // Both happened, so the test looked at both.
  EXPECT_GT(read, 5);
  EXPECT_GT(refused, 300);
}

std::string WithLeaf(absl::string_view leaf) {
  return absl::StrCat(R"({"format":"rill_spec","version":1,"leaves":[)", leaf,
                      R"(],"non_tensors":[]})");
}

TEST(SpecJsonTest, WrongMembersAreNamed) {
  const auto refused = [](absl::string_view leaf, absl::string_view words) {
    EXPECT_THAT(SpecFromJson(WithLeaf(leaf)), IsDataLoss(words)) << leaf;
  };
  constexpr absl::string_view kGood =
      R"({"key":"a","dtype":"bool","shape":[],"domain":"binary"})";
  RILL_EXPECT_OK(SpecFromJson(WithLeaf(kGood)));
  refused(absl::StrCat(kGood, ",", kGood), "no key twice");
  refused("3", "leaf 0");
  refused("{}", "\"domain\"");
  refused(R"({"domain":"b"})", "one of unbounded, bounded");
  refused(R"({"key":"a","dtype":"bool","shape":[],"domain":"binary","n":2})",
          "no members but key");
  refused(R"({"key":"a","dtype":"bool","shape":[],"domain":"binary",)"
          R"("mask":{"shape":[1],"allowed":"1"}})",
          "no members but key");
  refused(R"({"key":"a","key":"b","shape":[],"domain":"binary"})", "twice");
  refused(R"({"key":"a","dtype":"bool","domain":"binary"})", "\"shape\"");
  refused(R"({"key":"a//b","dtype":"bool","shape":[],"domain":"binary"})",
          "leaf 0");
  refused(R"({"key":"a","dtype":"qint8","shape":[],"domain":"unbounded"})",
          "qint8");
  refused(R"({"key":"a","dtype":"bool","shape":[-1],"domain":"binary"})",
          "leaf 0");
  refused(R"({"key":"a","dtype":"bool","shape":[1e3],"domain":"binary"})",
          "integer");
  refused(R"({"key":"a","dtype":"bool","shape":[18446744073709551615],)"
          R"("domain":"binary"})",
          "integer of 64 bits");
  refused(R"({"key":"a","dtype":"int8","shape":[1,1,1,1,1,1,1,1,1],)"
          R"("domain":"binary"})",
          "leaf 0");
  refused(R"({"key":"a","dtype":"int8","shape":[4],"domain":"one_hot","n":3})",
          "shape of the choices");
  refused(R"({"key":"a","dtype":"int8","shape":[],"domain":"one_hot","n":0})",
          "leaf 0");
  refused(
      R"({"key":"a","dtype":"int8","shape":[],"domain":"bounded","low":"nan",)"
      R"("high":1})",
      "\"-inf\"");
  refused(R"({"key":"a","dtype":"int8","shape":[],"domain":"bounded","low":2,)"
          R"("high":1})",
          "low <= high");
  refused(
      R"({"key":"a","dtype":"int8","shape":[2],"domain":"bounded","low":[1],)"
      R"("high":[1,2]})",
      "number of values: got 1, want 2");
  refused(
      R"({"key":"a","dtype":"int8","shape":[1],"domain":"bounded","low":[1],)"
      R"("high":[300]})",
      "got 300");
  refused(
      R"({"key":"a","dtype":"int8","shape":[],"domain":"categorical","n":2,)"
      R"("mask":{"shape":[2],"allowed":"1"}})",
      "a 0 or 1 for each element");
  refused(
      R"({"key":"a","dtype":"int8","shape":[],"domain":"categorical","n":2,)"
      R"("mask":{"shape":[2],"allowed":"00"}})",
      "at least one");
}

TEST(SpecJsonTest, HeadsAreChecked) {
  EXPECT_THAT(SpecFromJson("{}"), IsDataLoss("format"));
  EXPECT_THAT(SpecFromJson("[]"), IsDataLoss());
  EXPECT_THAT(
      SpecFromJson(R"({"format":"rill_spec","version":2,"anything":[]})"),
      IsFailedPrecondition("got 2, want at most 1"));
  EXPECT_THAT(SpecFromJson(R"({"format":"rill_spec","version":0})"),
              IsDataLoss());
  EXPECT_THAT(SpecFromJson(R"({"format":"rill_spec","version":1,"leaves":{},)"
                           R"("non_tensors":[]})"),
              IsDataLoss("a list"));
}

TEST(SpecJsonTest, HostileSizesAreRefusedEarly) {
  const auto kExhausted = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(SpecFromJson(std::string(1 << 20, '[')), StatusIs(kExhausted));
  EXPECT_THAT(SpecFromJson(std::string(kMaxSpecJsonBytes + 1, ' ')),
              StatusIs(kExhausted));
  std::string many;
  for (int i = 0; i <= kMaxSpecJsonLeaves; ++i) {
    absl::StrAppend(&many, i == 0 ? "" : ",", "0");
  }
  EXPECT_THAT(SpecFromJson(WithLeaf(many)), StatusIs(kExhausted));
  std::string members = "{";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&members, "\"", i, "\":0,");
  EXPECT_THAT(SpecFromJson(members + "\"x\":0}"), IsDataLoss("too many"));
  // Nothing is allocated for a shape alone.
  RILL_EXPECT_OK(SpecFromJson(
      WithLeaf(R"({"key":"a","dtype":"int8","shape":[1099511627776,1048576],)"
               R"("domain":"bounded","low":0,"high":1})")));
  EXPECT_THAT(SpecFromJson(WithLeaf(
                  R"({"key":"a","dtype":"int8","shape":[1099511627776],)"
                  R"("domain":"bounded","low":[0],"high":[1]})")),
              IsDataLoss());
  EXPECT_THAT(SpecFromJson(WithLeaf(
                  R"({"key":"a","dtype":"int8","shape":[],"domain":)"
                  R"("categorical","n":2,"mask":{"shape":[1099511627776,2],)"
                  R"("allowed":"10"}})")),
              IsDataLoss());
}

TEST(SpecJsonTest, WhatCannotBeReadIsNotWritten) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("\xFF", LeafSpec::Binary({})));
  EXPECT_THAT(SpecToJson(spec), IsInvalidArgument("UTF-8"));
  TensorDictSpec many;
  for (int i = 0; i <= kMaxSpecJsonLeaves; ++i) {
    RILL_ASSERT_OK(many.Set(absl::StrCat(i), LeafSpec::Binary({})));
  }
  EXPECT_THAT(SpecToJson(many), IsInvalidArgument("1025 leaves"));
  many.Erase("0");
  EXPECT_THAT(RunExample(many), IsOkAndHolds(many));
}

}  // namespace
}  // namespace rill
