// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_mask.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec SpecWith(const LeafSpec& action, const LeafSpec& mask) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  RILL_EXPECT_OK(spec.Set("action_mask", mask));
  RILL_EXPECT_OK(spec.Set("next/action_mask", mask));
  return spec;
}

// A step with this action and mask, through a transform; the action that the
// environment got and the step holds.
template <typename T>
absl::StatusOr<std::vector<T>> Act(const ActionMask::Options& options,
                                   const LeafSpec& spec,
                                   const std::vector<T>& action,
                                   const std::vector<bool>& mask) {
  const Shape flags = spec.domain == LeafSpec::Domain::kOneHot
                          ? spec.shape
                          : spec.shape.Concat({spec.num_categories});
  auto transform = ActionMask::Create(options);
  RILL_EXPECT_OK(transform);
  auto plan = (*transform)->PlanSteps(SpecWith(spec, LeafSpec::Binary(flags)));
  RILL_EXPECT_OK(plan);
  const Shape lanes = {2};
  const Tensor from = *Tensor::From<T>(action, lanes.Concat(spec.shape));
  const Tensor allowed = *Tensor::From<bool>(mask, lanes.Concat(flags));
  std::vector<BoundLeaf> leaves;
  for (const BoundRows::Leaf& leaf : plan->leaves) {
    const Tensor& tensor = leaf.key == "action_mask" ? allowed : from;
    leaves.push_back({.data = tensor.raw_data(),
                      .width = tensor.size_bytes() / 2,
                      .dtype = leaf.dtype,
                      .rows = 2,
                      .shape = leaf.shape});
  }
  TensorDict state;
  const absl::Status status = (*transform)->OnAction(leaves, &state);
  const auto got = *from.Flat<T>();
  if (status.ok()) return std::vector<T>(got.begin(), got.end());
  EXPECT_EQ(std::vector<T>(got.begin(), got.end()), action)
      << "an error changed actions";
  return status;
}

TEST(ActionMaskTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto mask,
                            ActionMask::Create({.mask_key = "legal"}));
  EXPECT_EQ(mask->name(), "ActionMask");
}

TEST(ActionMaskTest, AForbiddenActionNamesLaneAndOption) {
  const std::vector<bool> mask = {true, true, true, false, false, true};
  RILL_EXPECT_OK(Act<int64_t>({}, LeafSpec::Categorical(3), {1, 2}, mask));
  EXPECT_THAT(Act<int64_t>({}, LeafSpec::Categorical(3), {1, 1}, mask).status(),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("lane 1"), HasSubstr("got 1"),
                             HasSubstr("say 2"), HasSubstr("action_mask"))));
}

TEST(ActionMaskTest, AForbiddenActionMayBeReplaced) {
  const std::vector<bool> mask = {true, true, true, false, false, true};
  EXPECT_THAT(
      Act<int64_t>({.replace = true}, LeafSpec::Categorical(3), {1, 1}, mask),
      IsOkAndHolds(ElementsAre(1, 2)));
  EXPECT_THAT(
      Act<float>({.replace = true}, LeafSpec::OneHot(3, DType::kFloat32),
                 {0, 1, 0, 1, 0, 0}, mask),
      IsOkAndHolds(ElementsAre(0, 1, 0, 0, 0, 1)));
}

TEST(ActionMaskTest, AnErrorReplacesNoAction) {
  EXPECT_THAT(Act<int64_t>({.replace = true}, LeafSpec::Categorical(3), {1, 3},
                           {true, false, true, true, true, true})
                  .status(),
              StatusIs(kInvalidArgument, HasSubstr("lane 1")));
}

TEST(ActionMaskTest, EachChoiceOfARowHasItsMask) {
  EXPECT_THAT(
      Act<int32_t>({.replace = true},
                   LeafSpec::Categorical(2, DType::kInt32, {2}), {0, 0, 1, 1},
                   {true, false, false, true, true, false, false, true}),
      IsOkAndHolds(ElementsAre(0, 1, 0, 1)));
}

TEST(ActionMaskTest, NothingAllowedAndNoOptionAreErrors) {
  const std::vector<bool> none = {true, false, false, false};
  for (const bool replace : {false, true}) {
    EXPECT_THAT(
        Act<int64_t>({.replace = replace}, LeafSpec::Categorical(2), {0, 0},
                     none)
            .status(),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr("lane 1"), HasSubstr("allows no action"))));
    for (const int64_t wrong : {-1, 2}) {
      EXPECT_THAT(Act<int64_t>({.replace = replace}, LeafSpec::Categorical(2),
                               {0, wrong}, {true, true, true, true})
                      .status(),
                  StatusIs(kInvalidArgument, HasSubstr("lane 1")));
    }
    EXPECT_THAT(Act<bool>({.replace = replace}, LeafSpec::OneHot(2),
                          {true, false, true, true}, {true, true, true, true})
                    .status(),
                StatusIs(kInvalidArgument, HasSubstr("lane 1")));
  }
}

TEST(ActionMaskTest, ActionsAndMasksThatDoNotFitAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto mask, ActionMask::Create({}));
  EXPECT_THAT(mask->PlanSteps(TedSpec()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("action_mask")));
  EXPECT_THAT(mask->PlanSteps(SpecWith(LeafSpec::MultiCategorical({2, 3}),
                                       LeafSpec::Binary({5})))
                  .status(),
              StatusIs(kInvalidArgument, HasSubstr("Categorical or OneHot")));
  EXPECT_THAT(
      mask->PlanSteps(SpecWith(LeafSpec::Categorical(3), LeafSpec::Binary({4})))
          .status(),
      StatusIs(kInvalidArgument, HasSubstr("want bool[3]")));
  EXPECT_THAT(ActionMask::Create({.mask_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("mask_key")));
}

StepTransformUnderTest UnderTest(const ActionMask::Options& options,
                                 const LeafSpec& action) {
  // One option is allowed at each step.
  return BesideAnEnvironment<ActionMask>(options,
                                         SpecWith(action, LeafSpec::OneHot(4)));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(MaskedIndices,
                                       UnderTest({.replace = true},
                                                 LeafSpec::Categorical(4)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(MaskedOneHot,
                                       UnderTest({.replace = true},
                                                 LeafSpec::OneHot(4)));

}  // namespace rill
