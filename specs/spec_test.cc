// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TensorDictSpec StepSpec() {
  TensorDictSpec spec;
  spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4}))
      .IgnoreError();
  spec.Set("action", LeafSpec::Categorical(2)).IgnoreError();
  spec.Set("next/reward", LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1))
      .IgnoreError();
  spec.Set("next/done", LeafSpec::Binary({1})).IgnoreError();
  return spec;
}

absl::StatusOr<TensorDict> RunExample() {
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(spec.Set("action", LeafSpec::OneHot(4)));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/reward", LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1)));
  RILL_ASSIGN_OR_RETURN(TensorDict steps, spec.Random({32}, Rng(1), 0));
  EXPECT_TRUE(spec.Contains(steps));
  return steps;
}

TEST(TensorDictSpecTest, LeafKeysAreThoseOfItsDictionaries) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_ASSERT_OK(spec.SetNonTensor("note"));
  RILL_ASSERT_OK(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  EXPECT_THAT(spec.LeafKeys(),
              ::testing::ElementsAre("observation", "next/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, spec.Zero({2}));
  EXPECT_EQ(dict.LeafKeys(), spec.LeafKeys());
}

TEST(TensorDictSpecTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps, RunExample());
  EXPECT_THAT(*steps.Get("action"), TensorIs(DType::kBool, {32, 4}));
  EXPECT_THAT(steps, HasKeys("action", "next/reward"));
}

TEST(TensorDictSpecTest, TextShowsKeysAndLeaves) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.SetNonTensor("note"));
  EXPECT_EQ(spec.ToString(),
            "{observation: float32[4], action: int64[] in {0, ..., 1}, "
            "next/reward: float32[1] in [-1, 1], next/done: bool[1] in {0, "
            "1}, note: not a tensor}");
}

TEST(TensorDictSpecTest, OfReadsTheLayout) {
  TensorDictSpec want;
  RILL_ASSERT_OK(
      want.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_ASSERT_OK(want.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  RILL_ASSERT_OK(
      want.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(want.Set("next/done", LeafSpec::Unbounded(DType::kBool, {1})));
  EXPECT_EQ(TensorDictSpec::Of(MakeSteps(3)), want);
}

TEST(TensorDictSpecTest, SetReplacesFindsAndErases) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.Set("action", LeafSpec::Categorical(9)));
  EXPECT_EQ(spec.leaves()[1].spec.num_categories, 9);
  EXPECT_EQ(spec.leaves().size(), 4);
  EXPECT_EQ(spec.Find("x"), nullptr);
  EXPECT_EQ(spec.Find("next"), nullptr);
  spec.Erase("action");
  spec.Erase("action");
  EXPECT_EQ(spec.Find("action"), nullptr);
  EXPECT_EQ(spec.leaves().size(), 3);
}

TEST(TensorDictSpecTest, AKeyIsALeafOrADictionary) {
  TensorDictSpec spec = StepSpec();
  const LeafSpec leaf = LeafSpec::Unbounded(DType::kFloat32, {});
  EXPECT_THAT(spec.Set("next", leaf),
              StatusIs(kInvalid, HasSubstr("\"next\" beside \"next/reward\"")));
  EXPECT_THAT(spec.Set("action/x", leaf), StatusIs(kInvalid));
  EXPECT_THAT(spec.Set("a//b", leaf), StatusIs(kInvalid));
  RILL_EXPECT_OK(spec.Set("next_", leaf));  // Only a common beginning.
  RILL_EXPECT_OK(spec.Set(R"(next\/x)", leaf));
  EXPECT_EQ(spec.leaves().size(), 6);
}

TEST(TensorDictSpecTest, LayoutNamesMissingAndExtraKeys) {
  const TensorDictSpec spec = StepSpec();
  TensorDict dict = MakeSteps(3);
  RILL_EXPECT_OK(spec.CheckLayout("Test", dict));
  RILL_ASSERT_OK(dict.Rename("action", "act"));
  EXPECT_THAT(
      spec.CheckLayout("Buffer::Extend", dict),
      StatusIs(kInvalid, AllOf(HasSubstr("Buffer::Extend: keys: missing "
                                         "\"action\", too many \"act\""),
                               HasSubstr("want \"observation\", \"action\""))));
  EXPECT_THAT(spec.CheckValues("Test", dict, /*allow_extra=*/true),
              StatusIs(kInvalid, HasSubstr("too many none")));
  dict = MakeSteps(3);
  RILL_ASSERT_OK(dict.Set("next/done", Iota<float>({3, 1})));
  EXPECT_THAT(spec.CheckLayout("Test", dict),
              StatusIs(kInvalid, HasSubstr("Test: \"next/done\": got "
                                           "float32[3, 1], want bool[3, 1]")));
}

TEST(TensorDictSpecTest, ValuesAreCheckedAgainstDomains) {
  const TensorDictSpec spec = StepSpec();
  RILL_EXPECT_OK(spec.CheckValues("Test", MakeSteps(2)));
  EXPECT_THAT(spec.CheckValues("Test", MakeSteps(3)),
              StatusIs(kInvalid, HasSubstr("Test: \"action\"")));
  TensorDict more = MakeSteps(2);
  RILL_ASSERT_OK(more.Set("x", Iota<float>({2})));
  EXPECT_THAT(spec.CheckValues("Test", more), StatusIs(kInvalid));
  RILL_EXPECT_OK(spec.CheckValues("Test", more, /*allow_extra=*/true));
}

TEST(TensorDictSpecTest, RandomIsInsideAndLeavesAreIndependent) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.Set("twin", *spec.Find("observation")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            spec.Random({5, 2}, Rng(1), 0));
  EXPECT_EQ(dict.batch_shape(), Shape({5, 2}));
  RILL_EXPECT_OK(spec.CheckValues("Test", dict));
  EXPECT_THAT(*dict.Get("twin"),
              ::testing::Not(BitEqualTo(*dict.Get("observation"))));
}

TEST(TensorDictSpecTest, EmptyIsOneAllocation) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            StepSpec().Empty({100000}, {}));
  RILL_EXPECT_OK(StepSpec().CheckLayout("Test", dict));
  EXPECT_EQ(dict.Find("observation")->buffer(),
            dict.Find("next/done")->buffer());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            StepSpec().Empty({3}, {.device = Device::Fake()}));
  EXPECT_EQ(there.Find("action")->device(), Device::Fake());
}

TEST(TensorDictSpecTest, ZeroIsZero) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, StepSpec().Zero({3}));
  EXPECT_THAT(*dict.Flat<float>("observation"), Each(0));
  EXPECT_THAT(*dict.Flat<bool>("next/done"), Each(false));
  EXPECT_THAT(LeafSpec::Categorical(3).Zero({2}),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 0)));
}

TEST(TensorDictSpecTest, SizesThatOverflowAreStatuses) {
  EXPECT_THAT(StepSpec().Empty({int64_t{1} << 60}, {}), StatusIs(kInvalid));
  EXPECT_THAT(StepSpec().Zero({int64_t{1} << 62}),
              StatusIs(kInvalid, HasSubstr("\"observation\"")));
}

TEST(TensorDictSpecTest, BadDomainsAreNotSet) {
  TensorDictSpec spec;
  EXPECT_THAT(spec.Set("x", LeafSpec::Categorical(0)),
              StatusIs(kInvalid, HasSubstr("\"x\"")));
  EXPECT_TRUE(spec.empty());
}

TEST(TensorDictSpecTest, NestedSpecsGoInAndOut) {
  TensorDictSpec agent;
  RILL_ASSERT_OK(agent.Set("action", LeafSpec::OneHot(3)));
  RILL_ASSERT_OK(agent.SetNonTensor("info/name", {"\"scout\""}));
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.Set("agent", agent));
  EXPECT_NE(spec.Find("agent/action"), nullptr);
  EXPECT_THAT(spec.Nested("agent"), IsOkAndHolds(agent));
  EXPECT_THAT(spec.Nested("age"), IsNotFound("\"agent/info/name\""));
  const TensorDictSpec before = spec;
  EXPECT_THAT(spec.Set("action", agent), StatusIs(kInvalid));
  EXPECT_EQ(spec, before);
  RILL_ASSERT_OK(agent.Set("x", LeafSpec::Binary({})));
  TensorDictSpec clash;
  RILL_ASSERT_OK(clash.Set("a/x/y", LeafSpec::Binary({})));
  const TensorDictSpec whole = clash;
  EXPECT_THAT(clash.Set("a", agent), StatusIs(kInvalid));
  EXPECT_EQ(clash, whole);  // Not even the leaves before the clash.
}

TEST(TensorDictSpecTest, WhatIsDerivedKeepsTheDevice) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("next/x", LeafSpec::Unbounded(DType::kInt64, {2})));
  EXPECT_EQ(spec.device(), std::nullopt);
  const TensorDictSpec unset = spec;
  spec.set_device(Device::Fake(1));
  EXPECT_EQ(spec.device(), Device::Fake(1));
  EXPECT_FALSE(spec == unset);
  EXPECT_EQ(spec.Nested("next")->device(), Device::Fake(1));
  EXPECT_EQ(spec.Nested("next")->Index(0)->device(), Device::Fake(1));
}

TEST(TensorDictSpecTest, NonTensorsAreWantedAndMade) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.SetNonTensor("next/info", {"[1,2]"}));
  EXPECT_THAT(spec.SetNonTensor("next/info/deep"), StatusIs(kInvalid));
  EXPECT_THAT(spec.SetNonTensor("next"), StatusIs(kInvalid));
  EXPECT_EQ(spec.leaves().size(), 4);
  EXPECT_EQ(spec.non_tensors().size(), 1);
  TensorDict dict = MakeSteps(2);
  EXPECT_THAT(spec.CheckLayout("Test", dict),
              StatusIs(kInvalid, HasSubstr("missing \"next/info\"")));
  RILL_ASSERT_OK(dict.Set("next/info", NonTensor{"true"}));
  RILL_EXPECT_OK(spec.CheckValues("Test", dict));
  RILL_EXPECT_OK(StepSpec().CheckValues("Test", dict));
  // One a row will do; a tensor will not.
  RILL_ASSERT_OK_AND_ASSIGN(
      const NonTensorStack rows,
      NonTensorStack::Create({2}, std::vector<std::string>{"1", "2"}));
  RILL_ASSERT_OK(dict.Set("next/info", rows));
  RILL_EXPECT_OK(spec.CheckValues("Test", dict));
  RILL_ASSERT_OK(dict.Set("next/info", Iota<float>({2})));
  EXPECT_THAT(spec.CheckValues("Test", dict, /*allow_extra=*/true),
              StatusIs(kInvalid, HasSubstr("missing \"next/info\"")));
  for (const auto& made : {spec.Random({2}, Rng(1), 0), spec.Zero({2}),
                           spec.One({2}), spec.Empty({2}, {})}) {
    RILL_ASSERT_OK(made);
    EXPECT_THAT(made->GetNonTensor("next/info"),
                IsOkAndHolds(NonTensor{"[1,2]"}));
  }
  // A tensor takes its place, and the other way round.
  RILL_ASSERT_OK(spec.Set("next/info", LeafSpec::Binary({})));
  EXPECT_TRUE(spec.non_tensors().empty());
  RILL_ASSERT_OK(spec.SetNonTensor("next/info"));
  EXPECT_EQ(spec.Find("next/info"), nullptr);
  spec.Erase("next/info");
  EXPECT_EQ(spec, StepSpec());
}

TEST(TensorDictSpecTest, MasksAreSetByKey) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.SetMask("action", MakeTensor<bool>({0, 1}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            spec.Random({20}, Rng(1), 0));
  EXPECT_THAT(*dict.Flat<int64_t>("action"), Each(1));
  EXPECT_THAT(spec.SetMask("nope", MakeTensor<bool>({0, 1}, {2})),
              IsNotFound("\"action\""));
  EXPECT_THAT(spec.SetMask("next/done", MakeTensor<bool>({0, 1}, {2})),
              StatusIs(kInvalid, HasSubstr("\"next/done\"")));
}

TEST(TensorDictSpecTest, RandomIntoReusesLeaves) {
  const TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, spec.Random({3}, Rng(1), 0));
  RILL_ASSERT_OK(dict.Set("more", Iota<float>({3})));
  const Tensor action = *dict.Find("action");
  RILL_ASSERT_OK(dict.Set("observation", Iota<float>({3})));  // Does not fit.
  RILL_ASSERT_OK(spec.RandomInto({3}, Rng(1), 1, &dict));
  EXPECT_EQ(dict.Find("action")->raw_data(), action.raw_data());
  EXPECT_TRUE(dict.Contains("more"));
  RILL_ASSERT_OK(dict.Delete("more"));
  EXPECT_THAT(spec.Random({3}, Rng(1), 1), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(spec.RandomInto({4}, Rng(1), 0, &dict),
              StatusIs(kInvalid, HasSubstr("got [3], want [4]")));
}

TEST(TensorDictSpecTest, ProjectMovesLeavesInside) {
  TensorDict dict = MakeSteps(4);
  RILL_ASSERT_OK(dict.Set("more", Iota<float>({4})));
  const TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict projected, spec.Project(dict));
  RILL_EXPECT_OK(spec.CheckValues("Test", projected, /*allow_extra=*/true));
  EXPECT_THAT(*projected.Get("action"), TensorElementsAre<int64_t>(0, 1, 1, 1));
  EXPECT_THAT(*projected.Get("observation"),
              BitEqualTo(*dict.Get("observation")));
  EXPECT_EQ(dict.Find("action")->data<int64_t>()[3], 3);  // Unchanged.
  EXPECT_TRUE(projected.Contains("more"));
  RILL_ASSERT_OK(dict.Delete("action"));
  EXPECT_THAT(spec.Project(dict), IsNotFound());
}

TEST(TensorDictSpecTest, EnumerateIsTheProduct) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("a", LeafSpec::Categorical(3)));
  RILL_ASSERT_OK(spec.Set("b/c", LeafSpec::Binary({2})));
  EXPECT_EQ(spec.Cardinality(), 12);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, spec.Enumerate());
  EXPECT_EQ(all.batch_shape(), Shape({12}));
  RILL_EXPECT_OK(spec.CheckValues("Test", all));
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(all.Find("a")->data<int64_t>()[i], i / 4);
    EXPECT_EQ(all.Find("b/c")->data<bool>()[i * 2], i / 2 % 2);
    EXPECT_EQ(all.Find("b/c")->data<bool>()[i * 2 + 1], i % 2);
  }
  EXPECT_THAT(spec.Enumerate(11),
              StatusIs(kInvalid, HasSubstr("got 12, want at most 11")));
  EXPECT_EQ(StepSpec().Cardinality(), std::nullopt);
  EXPECT_THAT(StepSpec().Enumerate(), StatusIs(kInvalid));
}

TEST(TensorDictSpecTest, IndexAndMapLeavesKeepKeys) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("a", LeafSpec::OneHot(3, DType::kBool, {2})));
  RILL_ASSERT_OK(spec.Set("b", LeafSpec::Unbounded(DType::kFloat32, {2, 4})));
  RILL_ASSERT_OK(spec.SetNonTensor("note"));
  TensorDictSpec want;
  RILL_ASSERT_OK(want.Set("a", LeafSpec::OneHot(3)));
  RILL_ASSERT_OK(want.Set("b", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_ASSERT_OK(want.SetNonTensor("note"));
  EXPECT_THAT(spec.Index(1), IsOkAndHolds(want));
  EXPECT_THAT(spec.Index(2), IsOutOfRange("\"a\""));
  EXPECT_THAT(spec.MapLeaves([](absl::string_view, const LeafSpec&) {
    return LeafSpec::Categorical(0);
  }),
              StatusIs(kInvalid, HasSubstr("\"a\"")));
}

}  // namespace
}  // namespace rill
