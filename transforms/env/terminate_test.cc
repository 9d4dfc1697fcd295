// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/terminate.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

std::unique_ptr<StepTransform> MakeTerminate() {
  return *Terminate::Create({.in_keys = {"next/reward"},
                             .stop = [](Terminate::Leaves step, int64_t lane) {
                               return step[0].As<float>()[lane] > 0.5f;
                             }});
}

TEST(TerminateTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto terminate,
      Terminate::Create({.in_keys = {"next/reward"},
                         .stop = [](Terminate::Leaves step, int64_t lane) {
                           return step[0].As<float>()[lane] > 0.5f;
                         }}));
  EXPECT_EQ(terminate->name(), "Terminate");
}

TEST(TerminateTest, EndsTheLanesThatThePredicateNames) {
  const auto terminate = MakeTerminate();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 3, terminate.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}));
  TensorDict made({3});
  RILL_ASSERT_OK(
      made.Set("next/reward", *Tensor::From<float>({0, 1, 0}, {3, 1})));
  for (const char* flag : {"next/done", "next/truncated"}) {
    RILL_ASSERT_OK(
        made.Set(flag, *Tensor::From<bool>({false, false, true}, {3, 1})));
  }
  RILL_ASSERT_OK(
      made.Set("next/terminated", *Tensor::Zeros(DType::kBool, {3, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  const TensorDict& step = environment.step();
  EXPECT_THAT(step.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(false, true, false)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true, true)));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, false, true)));
}

TEST(TerminateTest, BadOptionsAreNamed) {
  EXPECT_THAT(Terminate::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("stop")));
  const auto stop = [](Terminate::Leaves, int64_t) { return false; };
  EXPECT_THAT(Terminate::Create({.in_keys = {"next/done"}, .stop = stop}),
              StatusIs(kInvalidArgument, HasSubstr("next/done")));
  EXPECT_THAT(Terminate::Create({.in_keys = {"a", "a"}, .stop = stop}),
              StatusIs(kInvalidArgument, HasSubstr("\"a\"")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto missing,
      Terminate::Create({.in_keys = {"next/goal"}, .stop = stop}));
  EXPECT_THAT(missing->PlanSteps(TedSpec()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("next/goal")));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Terminate, {.make = MakeTerminate,
                                                   .step_spec = TedSpec()});

}  // namespace rill
