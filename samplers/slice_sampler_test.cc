// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/slice_sampler.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

std::unique_ptr<Sampler> Make(const SliceUnitOptions& options) {
  return *MakeSliceSampler(options);
}

std::unique_ptr<Sampler> MakePairs() { return Make({.length = 2}); }

std::unique_ptr<Sampler> MakePadded() {
  return Make({.length = 3,
               .is_strict = false,
               .is_padded = true,
               .span_left = 1,
               .span_right = 2,
               .starts = SliceStarts::kRows});
}

std::unique_ptr<Sampler> MakeRecent() {
  return Make({.length = 2, .starts = SliceStarts::kRecent});
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Slices, {.make = MakePairs,
                                         .plans = {.rows_per_item = 2,
                                                   .may_find_nothing = true}});
INSTANTIATE_SAMPLER_CONFORMANCE(PaddedSlices, {.make = MakePadded,
                                               .plans = {.rows_per_item = 3}});
INSTANTIATE_SAMPLER_CONFORMANCE(RecentSlices,
                                {.make = MakeRecent,
                                 .plans = {.rows_per_item = 2,
                                           .may_find_nothing = true}});

namespace {

TEST(SliceSamplerTest, Example) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sampler> sampler,
                            MakeSliceSampler({.length = 4}));
  storage.AddObserver(sampler->observer());
  storage.Append(0, {{}, {.is_end = true}, {}, {}, {}, {}, {}});
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
  ASSERT_EQ(plan.draws.size(), 8u);
  for (size_t i = 0; i < plan.rows.size(); i += 4) {
    const std::vector<Slot> slice(&plan.rows[i], &plan.rows[i] + 4);
    EXPECT_THAT(slice, AnyOf(ElementsAre(2, 3, 4, 5), ElementsAre(3, 4, 5, 6)));
    EXPECT_EQ(plan.segments[i], static_cast<int64_t>(i / 4));
  }
}

TEST(SliceSamplerTest, ErrorsNameTheSampler) {
  const auto sampler = Make({.length = 4});
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  storage.AddObserver(sampler->observer());
  storage.Append(0, {{}, {}});
  SamplePlan plan;
  EXPECT_THAT(sampler->Plan({.batch_size = 10}, &plan),
              IsInvalidArgument("SliceSampler::Plan: batch size: got 10"));
  EXPECT_THAT(
      sampler->Plan({.batch_size = 8}, &plan),
      IsFailedPrecondition("SliceSampler::Plan: trajectories: got 1 of 2 "
                           "to 2 rows, want one of 4 or more"));
  EXPECT_THAT(MakeSliceSampler({}).status(),
              IsInvalidArgument("length: got 0, want [1, "));
}

}  // namespace
}  // namespace rill
