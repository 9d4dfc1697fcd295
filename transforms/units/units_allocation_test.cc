// SPDX-License-Identifier: Apache-2.0
// Into a batch that it has made, Apply allocates nothing.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

const std::vector<Slot> kAnchors = {0, 3, 4, 5, 11, 19};

// Allocations of an Apply after the first; those of tensors too.
int64_t AllocationsOf(const UnitTransform& unit, const SamplePlan& plan) {
  auto store = TedSpec().Random({20}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(store);
  const FakeSampleReader reader(TedSpec(), *store);
  TensorDict batch;
  RILL_EXPECT_OK(reader.ReadInto(unit, plan, &batch));
  auto gathered = reader.Gather(unit, plan, &batch);
  RILL_EXPECT_OK(gathered);
  const AllocationCounter allocations;
  const absl::Status status =
      unit.Apply(plan, gathered->rows, gathered->context, &batch);
  const int64_t made = allocations.count();
  RILL_EXPECT_OK(status);
  return made;
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
