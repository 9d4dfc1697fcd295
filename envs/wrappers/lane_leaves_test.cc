// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/lane_leaves.h"

#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::envs_internal {
namespace {

TEST(LaneLeavesTest, ALeafWhoseRowsHaveGapsIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(LaneLeaves::Of("Test", env->spec(), step).status());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                            Tensor::Zeros(DType::kFloat32, {2, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor column, wide.Slice(1, 0, 1));
  RILL_ASSERT_OK(step.Set("next/observation", std::move(column)));
  EXPECT_THAT(LaneLeaves::Of("Test", env->spec(), step).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Test: \"next/observation\": got rows with gaps, want a "
                       "contiguous leaf"));
}

}  // namespace
}  // namespace rill::envs_internal
