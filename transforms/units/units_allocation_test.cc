// SPDX-License-Identifier: Apache-2.0
// Into a batch that it has made, Apply allocates nothing. Replaces the
// program's global operator new, so it is a test of its own.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/units/row_arithmetic.h"

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

const std::vector<Slot> kAnchors = {0, 3, 4, 5, 11, 19};

// Of an Apply after the first; those of tensors too.
int64_t AllocationsOf(const UnitTransform& unit, const SamplePlan& plan) {
  auto store = TedSpec().Random({20}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(store);
  const FakeSampleReader reader(TedSpec(), *store);
  TensorDict batch;
  RILL_EXPECT_OK(reader.ReadInto(unit, plan, &batch));
  auto gathered = reader.Gather(unit, plan, &batch);
  RILL_EXPECT_OK(gathered);
  ScopedFaultHook count_buffers([](absl::string_view point, absl::string_view) {
    if (point == "host.allocate") ++num_allocations;
    return absl::OkStatus();
  });
  const int64_t before = num_allocations;
  const absl::Status status =
      unit.Apply(plan, gathered->rows, gathered->context, &batch);
  const int64_t after = num_allocations;
  RILL_EXPECT_OK(status);
  return after - before;
}

FakeUnits Units() {
  std::vector<bool> ends(20);
  ends[3] = ends[8] = true;
  return FakeUnits(ends);
}

TEST(UnitsAllocationTest, NStepReturns) {
  EXPECT_EQ(
      AllocationsOf(**RowArithmetic::Create(
                        {.n_step = NStepReturns::Options{.num_steps = 3}}),
                    Units().NSteps(kAnchors, 3)),
      0);
}

TEST(UnitsAllocationTest, StackFrames) {
  for (const auto padding :
       {StackFrames::Padding::kSame, StackFrames::Padding::kConstant}) {
    const auto frames =
        RowArithmetic::Create({.frames = StackFrames::Options{
                                   .num_frames = 3,
                                   .keys = {"next/observation", "observation"},
                                   .padding = padding,
                                   .value = 1}});
    EXPECT_EQ(AllocationsOf(**frames, Units().Frames(kAnchors, 3)), 0);
  }
}

TEST(UnitsAllocationTest, SliceMarks) {
  EXPECT_EQ(AllocationsOf(
                **RowArithmetic::Create({.slice_marks = SliceMarks::Options{}}),
                Units().Slices(kAnchors, 4, true)),
            0);
}

TEST(UnitsAllocationTest, SequenceMarks) {
  EXPECT_EQ(AllocationsOf(
                **RowArithmetic::Create(
                    {.sequence_marks =
                         SequenceMarks::Options{.length = 3, .burn_in = 2}}),
                Units().Sequences(kAnchors, 2, 3)),
            0);
}

TEST(UnitsAllocationTest, AllOfASliceTogether) {
  const auto all = RowArithmetic::Create(
      {.n_step = NStepReturns::Options{.num_steps = 3},
       .frames =
           StackFrames::Options{.num_frames = 2, .keys = {"next/observation"}},
       .slice_marks = SliceMarks::Options{}});
  const SamplePlan plan = Units().WithWindows(Units().Slices(kAnchors, 4, true),
                                              {.frames = 2, .steps = 3});
  EXPECT_EQ(AllocationsOf(**all, plan), 0);
}

}  // namespace
}  // namespace rill
