// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leafwise_transform.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CentReward final : public LeafwiseTransform {
 public:
  CentReward() : LeafwiseTransform({"next/reward"}, {.scale = {0.01}}) {}
  absl::string_view name() const override { return "CentReward"; }
};

// A user's transform for observations in [-1, 1].
class ObservationsFromZero final : public LeafwiseTransform {
 public:
  ObservationsFromZero()
      : LeafwiseTransform({"observation", "next/observation"},
                          {.scale = {0.5}, .loc = {0.5}}) {}
  absl::string_view name() const override { return "ObservationsFromZero"; }
};

TEST(LeafwiseTransformTest, Example) {
  const CentReward transform;
  TensorDict batch({2});
  RILL_ASSERT_OK(
      batch.Set("next/reward", *Tensor::From<float>({100, 250}, {2, 1})));
  RILL_ASSERT_OK(transform.Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1.0f, 2.5f)));
}

TEST(LeafwiseTransformTest, DescribesItsArithmeticAsData) {
  const ObservationsFromZero transform;
  EXPECT_THAT(transform.rows().in_keys,
              ElementsAre("observation", "next/observation"));
  ASSERT_EQ(transform.rows().map->steps().size(), 1u);
  const RowStep& step = transform.rows().map->steps()[0];
  EXPECT_EQ(step.kind, RowStep::Kind::kScaleThenShift);
  EXPECT_THAT(step.scale, ElementsAre(0.5));
  EXPECT_THAT(step.loc, ElementsAre(0.5));
}

TEST(LeafwiseTransformTest, RootsOfLanesThatGoOnAreNotMappedAgain) {
  const ObservationsFromZero transform;
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, &transform));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(environment.Reset({i == 0, 1}));
    RILL_EXPECT_OK(environment.plan()
                       .spec.Find("observation")
                       ->CheckValues("observation", {2},
                                     *environment.step().Find("observation")));
    RILL_ASSERT_OK(environment.Step());
    RILL_EXPECT_OK(
        environment.plan()
            .spec.Find("observation")
            ->CheckValues("next/observation", {2},
                          *environment.step().Find("next/observation")));
  }
}

TEST(LeafwiseTransformTest, RefusesLeavesWithoutThisArithmetic) {
  const CentReward transform;
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("next/reward", LeafSpec::Binary({1})));
  for (const absl::Status& status : {transform.ForwardSpec(spec).status(),
                                     transform.PlanSteps(spec).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("want float32 or float64")));
  }
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Observations,
    {.make = [] { return std::make_unique<ObservationsFromZero>(); },
     .batch_spec = TedSpec()});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Observations,
    {.make = [] { return std::make_unique<ObservationsFromZero>(); },
     .step_spec = TedSpec()});

}  // namespace rill
