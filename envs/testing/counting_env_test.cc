// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/counting_env.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Stay(const TensorDict&, Tensor*) { return absl::OkStatus(); }

TEST(CountingEnvTest, CountsItsSteps) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 4, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 1, 2, 0)));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 2, 3, 1)));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1, 0)));
}

TEST(CountingEnvTest, EndsTruncatedWhenAsked) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeCountingEnv({.episode_steps = 2, .ends_truncated = true}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 2, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(false, false)));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true)));
}

TEST(CountingEnvTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(
      MakeCountingEnv({.lanes = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 0, 3, 0")));
}

INSTANTIATE_TEST_SUITE_P(
    Counting, EnvConformanceTest,
    ::testing::Values(
        [] { return MakeCountingEnv({.lanes = 3, .stagger_steps = 2}); },
        [] { return MakeCountingEnv({.lanes = 2, .ends_truncated = true}); },
        [] { return MakeCountingEnv({.can_save = false}); }));

}  // namespace
}  // namespace rill
