// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/dtype_cast.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Observations and actions are float64.
TensorDictSpec DoubleSpec() {
  TensorDictSpec spec = TedSpec();
  const LeafSpec doubles = LeafSpec::Bounded(DType::kFloat64, {2, 2}, -1, 1);
  RILL_EXPECT_OK(spec.Set("observation", doubles));
  RILL_EXPECT_OK(spec.Set("next/observation", doubles));
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat64, {3}, -2, 2)));
  return spec;
}

const DTypeCast::Options kKeyed = {.dtype_in = DType::kFloat64,
                                   .dtype_out = DType::kFloat32,
                                   .in_keys = {"observation"},
                                   .in_keys_inv = {"next/reward"}};
const DoubleToFloat::Options kAction = {.in_keys = {"observation"},
                                        .in_keys_inv = {"action"}};

TEST(DTypeCastTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cast,
                            DTypeCast::Create({.dtype_in = DType::kInt64,
                                               .dtype_out = DType::kInt32,
                                               .in_keys = {"observation"}}));
  EXPECT_EQ(cast->name(), "DTypeCast");
}

TEST(DoubleToFloatTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_float, DoubleToFloat::Create({}));
  EXPECT_EQ(to_float->name(), "DoubleToFloat");
}

TEST(DTypeCastTest, NamedLeavesAreCastThereAndBack) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cast,
                            DTypeCast::Create({.dtype_in = DType::kUInt8,
                                               .dtype_out = DType::kFloat32,
                                               .in_keys = {"a"},
                                               .in_keys_inv = {"a"}}));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<uint8_t>({1, 255}, {2})));
  RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("a"), IsOkAndHolds(ElementsAre(1, 255)));
  RILL_ASSERT_OK(cast->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<uint8_t>("a"), IsOkAndHolds(ElementsAre(1, 255)));
}

TEST(DTypeCastTest, NamedLeafOfAnotherDTypeIsRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cast, DTypeCast::Create(kKeyed));
  EXPECT_THAT(cast->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("DTypeCast"), HasSubstr("observation"),
                             HasSubstr("float32[4]"), HasSubstr("float64"))));
  EXPECT_THAT(cast->PlanSteps(TedSpec()).status(), StatusIs(kInvalidArgument));
}

TEST(DTypeCastTest, BadOptionsAreNamed) {
  EXPECT_THAT(DTypeCast::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("dtype_out")));
  EXPECT_THAT(DTypeCast::Create({.dtype_in = DType::kUInt32}),
              StatusIs(kInvalidArgument, HasSubstr("uint32")));
  EXPECT_THAT(DTypeCast::Create({.dtype_in = DType::kBool}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(DoubleToFloat::Create({.out_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("out_keys")));
  EXPECT_THAT(DoubleToFloat::Create({.in_keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("DoubleToFloat::Create")));
}

TEST(DoubleToFloatTest, WithoutKeysAllDoublesAreCastAndNothingElse) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_float, DoubleToFloat::Create({}));
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("deep/a", *Tensor::From<double>({0.5}, {1})));
  RILL_ASSERT_OK(batch.Set("b", *Tensor::From<int64_t>({7}, {1})));
  RILL_ASSERT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_ASSERT_OK(to_float->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("deep/a"), IsOkAndHolds(ElementsAre(0.5f)));
  EXPECT_THAT(batch.Flat<int64_t>("b"), IsOkAndHolds(ElementsAre(7)));
  EXPECT_TRUE(batch.Contains("note"));
  RILL_ASSERT_OK(to_float->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<double>("deep/a"), IsOkAndHolds(ElementsAre(0.5)));
}

// Leaves of the batch that a gather makes are those that Forward makes.
TEST(DoubleToFloatTest, WithoutKeysAGatherMapsLeavesOfItsDtypeAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_float, DoubleToFloat::Create({}));
  GatherPlan plan = {
      .leaves = {{.key = "a",
                  .from = "a",
                  .spec = LeafSpec::Unbounded(DType::kFloat64, {3})},
                 {.key = "b", .from = "b", .spec = LeafSpec::Binary({3})}}};
  to_float->Extend(&plan);
  EXPECT_EQ(plan.leaves[0].maps.size(), 1u);
  EXPECT_TRUE(plan.leaves[1].maps.empty());
}

TEST(DoubleToFloatTest, ActionsAreCastBackOnTheirWayIn) {
  for (const DoubleToFloat::Options& options :
       {DoubleToFloat::Options(), kAction}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto to_float, DoubleToFloat::Create(options));
    const TensorDictSpec spec = DoubleSpec();
    RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                              FakeEnvironment::Create(spec, 2, to_float.get()));
    RILL_ASSERT_OK(environment.Reset({1, 1}));
    RILL_ASSERT_OK(environment.Step());
    for (const char* key : {"observation", "next/observation", "action"}) {
      const Tensor seen = *environment.step().Get(key);
      const Tensor made = *environment.environment_step().Get(key);
      EXPECT_EQ(seen.dtype(), DType::kFloat32) << key;
      EXPECT_EQ(made.dtype(), DType::kFloat64) << key;
      EXPECT_THAT(Cast(made, DType::kFloat32)->BitEquals(seen),
                  IsOkAndHolds(true))
          << key;
    }
    EXPECT_NE(environment.step().Flat<float>("action")->at(0), 0);
  }
}

// Where the only double is at the root, the last two leaves of the plan are its
// cast and the flag behind it, which are no pair.
TEST(DoubleToFloatTest, AStepWithoutADoubleActionLeavesTheFlagsAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_float, DoubleToFloat::Create({}));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(
      spec.Set("position", LeafSpec::Unbounded(DType::kFloat64, {4})));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, to_float->PlanSteps(spec));
  constexpr int64_t kRows = 2;
  std::vector<std::vector<double>> bytes(plan.leaves.size(),
                                         std::vector<double>(64, 0.0));
  std::vector<BoundLeaf> leaves;
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    const auto& leaf = plan.leaves[i];
    leaves.push_back(
        {.data = reinterpret_cast<std::byte*>(bytes[i].data()),
         .width = leaf.shape.num_elements() * DTypeSize(leaf.dtype),
         .dtype = leaf.dtype,
         .is_writable = true,
         .rows = kRows,
         .shape = leaf.shape});
  }
  ASSERT_EQ(plan.leaves.size(), 3u);
  ASSERT_EQ(plan.leaves[2].key, "next/done");
  const float ones[4 * kRows] = {1, 1, 1, 1, 1, 1, 1, 1};
  std::memcpy(bytes[1].data(), ones, sizeof(ones));
  RILL_ASSERT_OK(to_float->OnAction(leaves, nullptr));
  EXPECT_THAT(bytes[2], Each(0.0));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Keyed,
                                  InABuffer<DTypeCast>(kKeyed, DoubleSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    ThereAndBack, {.make =
                       [] {
                         return *DTypeCast::Create(
                             {.dtype_in = DType::kFloat64,
                              .dtype_out = DType::kFloat32,
                              .in_keys = {"observation", "action"},
                              .in_keys_inv = {"observation", "action"}});
                       },
                   .batch_spec = DoubleSpec(),
                   .inverse_tolerance = 1e-7,
                   .inverts_results = true});
INSTANTIATE_TRANSFORM_CONFORMANCE(DoublesThereAndBack,
                                  {.make =
                                       [] {
                                         return *DoubleToFloat::Create(
                                             {.in_keys = {"observation"},
                                              .in_keys_inv = {"observation"}});
                                       },
                                   .batch_spec = DoubleSpec(),
                                   .inverse_tolerance = 1e-7,
                                   .inverts_results = true});
INSTANTIATE_TRANSFORM_CONFORMANCE(All,
                                  InABuffer<DoubleToFloat>({}, DoubleSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Keyed, BesideAnEnvironment<DoubleToFloat>(kAction, DoubleSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    All, BesideAnEnvironment<DoubleToFloat>({}, DoubleSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    NothingToCast, BesideAnEnvironment<DoubleToFloat>({}, TedSpec()));

}  // namespace rill
