// SPDX-License-Identifier: Apache-2.0
// Once states come and go, a step of VecNorm allocates nothing. Replaces the
// program's global operator new, so it is a test of its own.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_transform.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

void* operator new(size_t bytes) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* data = std::malloc(bytes)) return data;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t /*bytes*/) noexcept { std::free(data); }

namespace rill {
namespace {

TEST(VecNormAllocationTest, AStepAllocatesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm, VecNorm::Create({.in_keys = {"observation", "next/reward"},
                                  .shapes = {{4}, {1}}}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, norm->PlanSteps(TedSpec()));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict step,
      plan.spec.Random({64}, Rng(1, RngStream::kUser), /*batch=*/0));
  RILL_ASSERT_OK_AND_ASSIGN(
      BoundRows rows,
      BoundRows::Create("Test", plan.leaves, {.is_passed_in = true}));
  RILL_ASSERT_OK(rows.Bind(&step));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, norm->InitialState(64));
  ScopedFaultHook count_buffers([](absl::string_view point, absl::string_view) {
    if (point == "host.allocate") ++num_allocations;
    return absl::OkStatus();
  });
  for (int i = 0; i < 6; ++i) {
    TensorDict next = state;
    const int64_t before = num_allocations;
    const absl::Status status = norm->OnStep(rows.leaves(), &next);
    const int64_t after = num_allocations;
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
