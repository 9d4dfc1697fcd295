// SPDX-License-Identifier: Apache-2.0
// Once batches and states come and go, windows on write allocate nothing.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/multi_step.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 4;
constexpr int64_t kSteps = 8;

// Batches of so many steps, whose rows nobody ends, in turn.
int64_t AllocationsOfSteadyWrites(const std::vector<int64_t>& steps) {
  TensorDictSpec spec = TedSpec();
  for (const char* flag : {"next/done", "next/terminated", "next/truncated"}) {
    RILL_EXPECT_OK(spec.Set(flag, LeafSpec::Bounded(DType::kBool, {1}, 0, 0)));
  }
  auto multi_step = MultiStep::Create({.n_steps = 3,
                                       .rows = spec,
                                       .lanes = kLanes,
                                       .steps_key = "steps",
                                       .gamma_key = "gamma"});
  RILL_EXPECT_OK(multi_step);
  auto state = (*multi_step)->InitialState();
  RILL_EXPECT_OK(state);
  int64_t made = 0;
  for (int i = 0; i < 12; ++i) {
    auto batch =
        spec.Random({kLanes, steps[static_cast<size_t>(i) % steps.size()]},
                    Rng(1, RngStream::kUser), static_cast<uint64_t>(i));
    RILL_EXPECT_OK(batch);
    // Room for the keys that are added.
    for (const char* key : {"steps", "gamma"}) {
      RILL_EXPECT_OK(batch->Set(key, *batch->Find("next/reward")));
    }
    for (const char* key : {"steps", "gamma"}) {
      RILL_EXPECT_OK(batch->Delete(key));
    }
    TensorDict next = *state;
    const AllocationCounter allocations;
    const absl::Status status = (*multi_step)->Inverse(&*batch, &next);
    if (i >= 6) made += allocations.count();
    RILL_EXPECT_OK(status);
    *state = std::move(next);
  }
  return made;
}

TEST(MultiStepAllocationTest, SteadyWritesAllocateNothing) {
  EXPECT_EQ(AllocationsOfSteadyWrites({kSteps}), 0);
}

TEST(MultiStepAllocationTest, BatchesOfTwoSizesInTurnAllocateNothing) {
  EXPECT_EQ(AllocationsOfSteadyWrites({kSteps, kSteps + 1}), 0);
}

}  // namespace
}  // namespace rill
