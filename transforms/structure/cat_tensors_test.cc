// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/cat_tensors.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Leaves "a" and "b" at the root and below next.
TensorDictSpec WithParts(const LeafSpec& a, const LeafSpec& b) {
  TensorDictSpec spec = TedSpec();
  for (const char* prefix : {"", "next/"}) {
    RILL_EXPECT_OK(spec.Set(std::string(prefix) + "a", a));
    RILL_EXPECT_OK(spec.Set(std::string(prefix) + "b", b));
  }
  return spec;
}

TensorDictSpec Parts() {
  return WithParts(LeafSpec::Bounded(DType::kFloat32, {3, 2}, -1, 1),
                   LeafSpec::Bounded(DType::kFloat32, {3, 4}, 0, 5));
}

TensorDictSpec EqualParts() {
  return WithParts(LeafSpec::Binary({3, 2}), LeafSpec::Binary({3, 2}));
}

TensorDict BatchOf(const Tensor& a, const Tensor& b) {
  TensorDict batch({a.shape()[0]});
  RILL_EXPECT_OK(batch.Set("a", a));
  RILL_EXPECT_OK(batch.Set("b", b));
  return batch;
}

TensorDict TwoRows() {
  return BatchOf(*Tensor::From<float>({1, 2, 3, 4}, {2, 2}),
                 *Tensor::From<float>({5, 6}, {2, 1}));
}

const CatTensors::Options kCat = {.in_keys = {"b", "a"}, .out_key = "both"};
const CatTensors::Options kKeeping = {
    .in_keys = {"a", "b"}, .out_key = "observation", .del_keys = false};
const StackTensors::Options kStack = {
    .in_keys = {"b", "a"}, .out_key = "both", .dim = -2};

// --- CatTensors --------------------------------------------------------------

TEST(CatTensorsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto cat, CatTensors::Create({.in_keys = {"position", "velocity"},
                                    .out_key = "observation"}));
  EXPECT_EQ(cat->name(), "CatTensors");
}

TEST(CatTensorsTest, T6_KeysAreSorted) {
  TensorDict batch = TwoRows();
  RILL_ASSERT_OK((*CatTensors::Create(kCat))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("both"),
              IsOkAndHolds(ElementsAre(1, 2, 5, 3, 4, 6)));
  CatTensors::Options options = kCat;
  options.sort = false;
  batch = TwoRows();
  RILL_ASSERT_OK((*CatTensors::Create(options))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("both"),
              IsOkAndHolds(ElementsAre(5, 1, 2, 6, 3, 4)));
}

TEST(CatTensorsTest, OldLeavesGoUnlessTheyAreToStay) {
  TensorDict batch = TwoRows();
  RILL_ASSERT_OK((*CatTensors::Create(kCat))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Keys(), ElementsAre("both"));
  batch = TwoRows();
  RILL_ASSERT_OK((*CatTensors::Create(kKeeping))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Keys(), ElementsAre("a", "b", "observation"));
  // The joined leaf may take the place of one of them.
  batch = TwoRows();
  RILL_ASSERT_OK((*CatTensors::Create({.in_keys = {"a", "b"}, .out_key = "b"}))
                     ->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("b"),
              IsOkAndHolds(ElementsAre(1, 2, 5, 3, 4, 6)));
  EXPECT_THAT(batch.Keys(), ElementsAre("b"));
}

TEST(CatTensorsTest, DictionariesThatAreEmptyThenGo) {
  for (const char* out : {"both", "in/both"}) {
    TensorDict batch = TwoRows();
    for (const char* key : {"a", "b"}) {
      RILL_ASSERT_OK(batch.Rename(key, std::string("in/deep/") + key));
    }
    RILL_ASSERT_OK((*CatTensors::Create({.in_keys = {"in/deep/a", "in/deep/b"},
                                         .out_key = out}))
                       ->Forward(&batch, nullptr));
    EXPECT_THAT(batch.LeafKeys(), ElementsAre(out));
    EXPECT_FALSE(batch.Contains("in/deep"));
    EXPECT_EQ(batch.Contains("in"), batch.Contains("in/both"));
  }
}

TEST(CatTensorsTest, AnOutKeyOfADictionaryWithOtherEntriesIsRefused) {
  for (const bool has_other : {false, true}) {
    TensorDict batch = TwoRows();
    if (has_other) {
      RILL_ASSERT_OK(batch.Set("in/other", *batch.Get("a")));
    }
    RILL_ASSERT_OK(batch.Rename("a", "in/deep/a"));
    auto cat =
        *CatTensors::Create({.in_keys = {"in/deep/a", "b"}, .out_key = "in"});
    const TensorDict before = batch;
    const absl::Status status = cat->Forward(&batch, nullptr);
    if (has_other) {
      RILL_EXPECT_OK(batch.CheckEqual(before));
      EXPECT_THAT(status, StatusIs(kInvalidArgument,
                                   HasSubstr("\"in\": got a dictionary")));
    } else {
      RILL_EXPECT_OK(status);
      EXPECT_THAT(batch.Keys(), ElementsAre("in"));
    }
  }
}

TEST(CatTensorsTest, OtherDimensionsThanTheLast) {
  TensorDict batch = BatchOf(*Tensor::From<int32_t>({1, 2, 3, 4}, {1, 2, 2}),
                             *Tensor::From<int32_t>({5, 6}, {1, 1, 2}));
  CatTensors::Options options = kCat;
  options.dim = -2;
  RILL_ASSERT_OK((*CatTensors::Create(options))->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("both")->shape(), Shape({1, 3, 2}));
  EXPECT_THAT(batch.Flat<int32_t>("both"),
              IsOkAndHolds(ElementsAre(1, 2, 3, 4, 5, 6)));
}

TEST(CatTensorsTest, BoundsAreThoseOfAll) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            (*CatTensors::Create(kCat))->ForwardSpec(Parts()));
  EXPECT_EQ(*spec.Find("both"),
            LeafSpec::Bounded(DType::kFloat32, {3, 6}, -1, 5));
  EXPECT_EQ(spec.Find("a"), nullptr);
}

TEST(CatTensorsTest, LeavesThatDoNotFitAreNamed) {
  const auto refused = [](const Tensor& b, int dim, const char* want) {
    CatTensors::Options options = kCat;
    options.dim = dim;
    auto cat = *CatTensors::Create(options);
    TensorDict batch = BatchOf(*Tensor::Zeros(DType::kFloat32, {2, 3, 4}), b);
    const auto error = StatusIs(
        kInvalidArgument,
        AllOf(HasSubstr("CatTensors"), HasSubstr("\"b\""), HasSubstr(want)));
    EXPECT_THAT(cat->ForwardSpec(TensorDictSpec::Of(batch)), error);
    EXPECT_THAT(cat->Forward(&batch, nullptr), error);
  };
  refused(*Tensor::Zeros(DType::kFloat64, {2, 3, 4}), -1, "want float32");
  refused(*Tensor::Zeros(DType::kFloat32, {2, 5, 4}), -1, "[3, 4]");
  refused(*Tensor::Zeros(DType::kFloat32, {2, 3}), -1, "[3, 4]");
  refused(*Tensor::Zeros(DType::kFloat32, {2, 3}), -2, "dimension -2");
  refused(*Tensor::Zeros(DType::kFloat32, {2}), -1, "dimension -1");
}

TEST(CatTensorsTest, LeavesWithoutElementsAddNothing) {
  TensorDict batch = BatchOf(*Tensor::Zeros(DType::kFloat32, {2, 0}),
                             *Tensor::From<float>({5, 6}, {2, 1}));
  RILL_ASSERT_OK((*CatTensors::Create(kCat))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("both"), IsOkAndHolds(ElementsAre(5, 6)));
}

TEST(CatTensorsTest, MissingLeavesAreNamed) {
  auto cat = *CatTensors::Create(kCat);
  TensorDict batch({1});
  const auto error =
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("CatTensors"));
  EXPECT_THAT(cat->Forward(&batch, nullptr), error);
  EXPECT_THAT(cat->ForwardSpec(TedSpec()), error);
  EXPECT_THAT(cat->PlanSteps(TedSpec()).status(), error);
}

TEST(CatTensorsTest, BadOptionsAreNamed) {
  EXPECT_THAT(CatTensors::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(CatTensors::Create({.in_keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
  EXPECT_THAT(CatTensors::Create({.in_keys = {"a"}, .dim = 0}),
              StatusIs(kInvalidArgument, HasSubstr("dim: got 0")));
  EXPECT_THAT(StackTensors::Create({.in_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("out_key")));
  EXPECT_THAT(StackTensors::Create({.in_keys = {"a"}, .out_key = "a"}),
              StatusIs(kInvalidArgument, HasSubstr("out_key: got \"a\"")));
}

TEST(CatTensorsTest,
     KeysThatStepsNeedOrBelowNextAreRefusedBesideAnEnvironment) {
  for (const char* key : {"done", "action", "next/a"}) {
    auto cat = *CatTensors::Create({.in_keys = {key}});
    EXPECT_THAT(cat->PlanSteps(Parts()).status(),
                StatusIs(kInvalidArgument, HasSubstr(key)));
  }
}

// --- StackTensors ------------------------------------------------------------

TEST(StackTensorsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto stack,
      StackTensors::Create(
          {.in_keys = {"left", "right"}, .out_key = "eyes", .dim = -4}));
  EXPECT_EQ(stack->name(), "StackTensors");
}

TEST(StackTensorsTest, NewDimensionsCountFromTheBack) {
  const TensorDict before =
      BatchOf(*Tensor::From<int32_t>({1, 2, 3, 4}, {2, 2}),
              *Tensor::From<int32_t>({5, 6, 7, 8}, {2, 2}));
  TensorDict batch = before;
  StackTensors::Options options = {.in_keys = {"a", "b"}, .out_key = "both"};
  RILL_ASSERT_OK((*StackTensors::Create(options))->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("both")->shape(), Shape({2, 2, 2}));
  EXPECT_THAT(batch.Flat<int32_t>("both"),
              IsOkAndHolds(ElementsAre(1, 5, 2, 6, 3, 7, 4, 8)));
  options.dim = -2;
  batch = before;
  RILL_ASSERT_OK((*StackTensors::Create(options))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<int32_t>("both"),
              IsOkAndHolds(ElementsAre(1, 2, 5, 6, 3, 4, 7, 8)));
  EXPECT_THAT(batch.Keys(), ElementsAre("both"));
}

TEST(StackTensorsTest, LeavesThatDoNotFitAreNamed) {
  auto stack = *StackTensors::Create(kStack);
  EXPECT_THAT(stack->ForwardSpec(Parts()),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("\"a\""), HasSubstr("[3, 4]"))));
  TensorDictSpec full;
  RILL_ASSERT_OK(full.Set("a", LeafSpec::Binary({1, 1, 1, 1, 1, 1, 1, 2})));
  RILL_ASSERT_OK(full.Set("b", LeafSpec::Binary({1, 1, 1, 1, 1, 1, 1, 2})));
  EXPECT_THAT(stack->ForwardSpec(full),
              StatusIs(kInvalidArgument, HasSubstr("room")));
}

// --- Beside an environment ---------------------------------------------------

TEST(CatTensorsTest, StepsAreJoinedAtTheRootAndBelowNext) {
  auto cat = *CatTensors::Create(kCat);
  const TensorDictSpec spec = Parts();
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 2, cat.get()));
  EXPECT_THAT(environment.plan().spec.LeafKeys(),
              AllOf(Contains("both"), Contains("next/both"), Not(Contains("a")),
                    Not(Contains("next/a"))));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  for (const char* prefix : {"", "next/"}) {
    TensorDict batch({2});
    for (const char* key : {"a", "b"}) {
      RILL_ASSERT_OK(batch.Set(
          key, *environment.environment_step().Get(std::string(prefix) + key)));
    }
    RILL_ASSERT_OK(cat->Forward(&batch, nullptr));
    EXPECT_THAT(batch.Get("both")->BitEquals(
                    *environment.step().Get(std::string(prefix) + "both")),
                IsOkAndHolds(true));
  }
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Cat, InABuffer<CatTensors>(kCat, Parts()));
INSTANTIATE_TRANSFORM_CONFORMANCE(CatAndKeep,
                                  InABuffer<CatTensors>(kKeeping, Parts()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Stack, InABuffer<StackTensors>(kStack,
                                                                 EqualParts()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Cat, BesideAnEnvironment<CatTensors>(kCat, Parts()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    CatAndKeep, BesideAnEnvironment<CatTensors>(kKeeping, Parts()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Stack, BesideAnEnvironment<StackTensors>(kStack, EqualParts()));

}  // namespace rill
