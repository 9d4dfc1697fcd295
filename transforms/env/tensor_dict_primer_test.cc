// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/tensor_dict_primer.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec Primers() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("hidden", LeafSpec::Bounded(DType::kFloat32, {2}, -1, 1)));
  RILL_EXPECT_OK(spec.Set("of/task", LeafSpec::Categorical(1000)));
  return spec;
}

StepTransformUnderTest UnderTest(TensorDictPrimer::Options options) {
  options.primers = Primers();
  return BesideAnEnvironment<TensorDictPrimer>(options, TedSpec());
}

absl::Status BuildExample() {
  TensorDictSpec primers;
  RILL_RETURN_IF_ERROR(
      primers.Set("hidden", LeafSpec::Unbounded(DType::kFloat32, {64})));
  RILL_ASSIGN_OR_RETURN(auto primer,
                        TensorDictPrimer::Create({.primers = primers}));
  return primer->PlanSteps(TedSpec()).status();
}

TEST(TensorDictPrimerTest, Example) { RILL_EXPECT_OK(BuildExample()); }

TEST(TensorDictPrimerTest, FillsAtResetsAndCarriesUntilTheNext) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto primer,
      TensorDictPrimer::Create({.primers = Primers(),
                                .default_value = 0.5,
                                .default_values = {{"of/task", 7}}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 2, primer.get()));
  RILL_ASSERT_OK(environment.Reset({0, 1}));
  RILL_ASSERT_OK(environment.Step());
  for (const char* key : {"hidden", "next/hidden"}) {
    EXPECT_THAT(environment.step().Flat<float>(key),
                IsOkAndHolds(ElementsAre(0, 0, 0.5f, 0.5f)));
  }
  EXPECT_THAT(environment.step().Flat<int64_t>("next/of/task"),
              IsOkAndHolds(ElementsAre(0, 7)));
}

TEST(TensorDictPrimerTest, RandomValuesAreTheLanesOwnAndTheSeeds) {
  const auto tasks = [](uint64_t seed, uint64_t env_seed) {
    auto primer = *TensorDictPrimer::Create(
        {.primers = Primers(), .random = true, .seed = seed});
    auto environment = *FakeEnvironment::Create(TedSpec(), 3, primer.get());
    RILL_EXPECT_OK(primer->OnSeed(env_seed, &environment.state()));
    std::vector<int64_t> all;
    for (const std::vector<uint8_t>& mask :
         std::vector<std::vector<uint8_t>>{{1, 1, 1}, {0, 1, 0}}) {
      RILL_EXPECT_OK(environment.Reset(mask));
      const auto now = *environment.step().Flat<int64_t>("of/task");
      all.insert(all.end(), now.begin(), now.end());
    }
    return all;
  };
  const std::vector<int64_t> values = tasks(1, 2);
  EXPECT_NE(values[0], values[1]);
  EXPECT_EQ(values[0], values[3]);
  EXPECT_NE(values[1], values[4]);
  EXPECT_EQ(tasks(1, 2), values);
  EXPECT_NE(tasks(2, 2), values);
  EXPECT_NE(tasks(1, 3), values);
}

TEST(TensorDictPrimerTest, OneFunctionMayMakeAllValues) {
  const auto make =
      [](absl::Span<const uint8_t> mask) -> absl::StatusOr<TensorDict> {
    const auto lanes = static_cast<int64_t>(mask.size());
    RILL_ASSIGN_OR_RETURN(TensorDict made, Primers().Zero({lanes}));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      made.Find("of/task")->data<int64_t>()[lane] = 10 + lane;
    }
    return made;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      auto primer, TensorDictPrimer::Create(
                       {.primers = Primers(), .single_default_value = make}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 3, primer.get()));
  RILL_ASSERT_OK(environment.Reset({1, 0, 1}));
  EXPECT_THAT(environment.step().Flat<int64_t>("of/task"),
              IsOkAndHolds(ElementsAre(10, 0, 12)));

  RILL_ASSERT_OK_AND_ASSIGN(
      auto wrong,
      TensorDictPrimer::Create(
          {.primers = Primers(),
           .single_default_value = [](absl::Span<const uint8_t>)
               -> absl::StatusOr<TensorDict> { return TensorDict({3}); }}));
  RILL_ASSERT_OK_AND_ASSIGN(auto other,
                            FakeEnvironment::Create(TedSpec(), 3, wrong.get()));
  EXPECT_THAT(other.Reset({1, 1, 1}),
              StatusIs(kInvalidArgument, HasSubstr("hidden")));
}

TEST(TensorDictPrimerTest, BadOptionsAreNamed) {
  EXPECT_THAT(TensorDictPrimer::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("primers")));
  TensorDictSpec taken;
  RILL_ASSERT_OK(taken.Set("next/x", LeafSpec::Unbounded(DType::kInt64, {})));
  EXPECT_THAT(TensorDictPrimer::Create({.primers = taken}),
              StatusIs(kInvalidArgument, HasSubstr("next/x")));
  EXPECT_THAT(
      TensorDictPrimer::Create({.primers = Primers(), .default_value = 2}),
      StatusIs(kInvalidArgument, HasSubstr("hidden")));
  EXPECT_THAT(TensorDictPrimer::Create(
                  {.primers = Primers(), .default_values = {{"x", 1}}}),
              StatusIs(kInvalidArgument, HasSubstr("\"x\"")));
  EXPECT_THAT(TensorDictPrimer::Create(
                  {.primers = Primers(), .random = true, .default_value = 1}),
              StatusIs(kInvalidArgument, HasSubstr("random")));
}

TEST(TensorDictPrimerTest, AKeyOfTheEnvironmentIsRefused) {
  TensorDictSpec primers;
  RILL_ASSERT_OK(
      primers.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_ASSERT_OK_AND_ASSIGN(auto primer,
                            TensorDictPrimer::Create({.primers = primers}));
  EXPECT_THAT(primer->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("observation")));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(PrimerOfAValue,
                                       UnderTest({.default_value = 1}));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(RandomPrimer,
                                       UnderTest({.random = true}));

}  // namespace rill
