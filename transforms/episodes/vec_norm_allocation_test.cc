// SPDX-License-Identifier: Apache-2.0
// Once states come and go, a step of VecNorm allocates nothing.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

class VecNormAllocationTest : public testing::TestWithParam<double> {};

INSTANTIATE_TEST_SUITE_P(Decays, VecNormAllocationTest,
                         testing::Values(1, 0.9999));

TEST_P(VecNormAllocationTest, AStepAllocatesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm, VecNorm::Create({.in_keys = {"observation", "next/reward"},
                                  .shapes = {{4}, {1}},
                                  .decay = GetParam()}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, norm->PlanSteps(TedSpec()));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict step,
      plan.spec.Random({64}, Rng(1, RngStream::kUser), /*batch=*/0));
  RILL_ASSERT_OK_AND_ASSIGN(
      BoundRows rows,
      BoundRows::Create("Test", plan.leaves, {.is_passed_in = true}));
  RILL_ASSERT_OK(rows.Bind(&step));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, norm->InitialState(64));
  const AllocationCounter allocations;
  for (int i = 0; i < 6; ++i) {
    TensorDict next = state;
    const int64_t before = allocations.count();
    const absl::Status status = norm->OnStep(rows.leaves(), &next);
    const int64_t after = allocations.count();
    RILL_ASSERT_OK(status);
    // The first two make the tensors that take turns.
    if (i >= 2) {
      EXPECT_EQ(after - before, 0) << i;
    }
    state = std::move(next);
  }
}

}  // namespace
}  // namespace rill
