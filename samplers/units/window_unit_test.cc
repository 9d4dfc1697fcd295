// SPDX-License-Identifier: Apache-2.0
// A name like T3 is the number of the TorchRL behaviour that a test repeats.
#include "rill/samplers/units/window_unit.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

std::unique_ptr<Sampler> Over(std::unique_ptr<Selector> selector,
                              const RowWindows& windows = {.frames = 4,
                                                           .steps = 3}) {
  return *MakeSampler(std::move(selector), *MakeWindowUnit(windows), "Window");
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = [] {
                                  return Over(MakeUniformSelector());
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(Prioritized, {.make = [] {
                                  return Over(*PrioritizedSelector::Create({}));
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(
    WithoutReplacement,
    {.make = [] { return Over(MakeWithoutReplacementSelector()); },
     .is_stateful = true});

namespace {

// Each draw's row with its window, by the row.
std::map<Slot, std::vector<Slot>> WindowsOf(const SamplePlan& plan) {
  std::map<Slot, std::vector<Slot>> windows;
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    std::vector<Slot>& window = windows[plan.draws[i].slot];
    window = {plan.draws[i].slot};
    const SamplePlan::Context& following = plan.context[0];
    for (size_t k = 0; k < following.rows.size(); ++k) {
      if (following.segments[k] != static_cast<int64_t>(i)) continue;
      window.push_back(following.rows[k]);
    }
  }
  return windows;
}

TEST(WindowUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Unit> unit,
                            MakeWindowUnit({.frames = 4, .steps = 3}));
  EXPECT_EQ(unit->traits().layout.ContextString(),
            "frames before (3 rows), steps behind (2 rows), window ends (1 "
            "row)");
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      MakeSampler(MakeUniformSelector(), std::move(unit), "Rainbow"));
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  storage.AddObserver(sampler->observer());
  storage.Append(0, std::vector<StorageModel::Value>(8));
  const SamplePlan plan = PlanOf(*sampler, 1, 1, 0);
  EXPECT_THAT(plan.rows, IsEmpty());
  ASSERT_THAT(plan.context, SizeIs(3));
  EXPECT_THAT(plan.context[0].rows, SizeIs(3));
  const Slot slot = plan.draws[0].slot;
  EXPECT_THAT(plan.context[1].rows, SizeIs(std::min<int64_t>(2, 7 - slot)));
  EXPECT_THAT(plan.context[2].rows,
              ElementsAre(std::min<int64_t>(slot + 2, 7)));
}

// Rows 0 .. 2 end an episode, 3 and 4 are of one that goes on.
TEST(WindowUnitTest, T3_WindowsEndWithTheirEpisodeAndAtTheNewestRow) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  const auto two = AttachTo(storage, Over(MakeUniformSelector(), {.steps = 2}));
  const auto one = AttachTo(storage, Over(MakeUniformSelector(), {.steps = 1}));
  storage.Append(0, {{}, {}, {.is_end = true}, {}, {}});
  EXPECT_THAT(WindowsOf(PlanOf(*two, 200, 1, 0)),
              ElementsAre(Pair(0, ElementsAre(0, 1)),
                          Pair(1, ElementsAre(1, 2)), Pair(2, ElementsAre(2)),
                          Pair(3, ElementsAre(3, 4)), Pair(4, ElementsAre(4))));
  const SamplePlan plan = PlanOf(*one, 200, 1, 0);
  EXPECT_THAT(plan.context[0].rows, IsEmpty());
  ASSERT_THAT(plan.context[1].rows, SizeIs(200));
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(plan.context[1].rows[i], plan.draws[i].slot);
  }
}

TEST(WindowUnitTest, DrawsTheRowsOfAUniformSampler) {
  const auto sampler = Over(MakeUniformSelector());
  ExpectDrawsOfAUniformSampler(sampler.get());
}

TEST(WindowUnitTest, WindowsOfRandomHistoriesAreRowsOfOneTrajectory) {
  for (const int64_t steps : {2, 5}) {
    ForPlansOverHistories(
        60, 16, [&] { return Over(MakeUniformSelector(), {.steps = steps}); },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          ASSERT_EQ(plan == nullptr, rows.all().empty());
          if (plan == nullptr) return;
          EXPECT_THAT(plan->rows, IsEmpty());
          std::vector<Slot> following, last;
          std::vector<int64_t> segments;
          for (size_t i = 0; i < plan->draws.size(); ++i) {
            const Slot slot = plan->draws[i].slot;
            const std::vector<Slot>& all = rows.TrajectoryOf(slot);
            const size_t first = rows.OffsetOf(slot);
            const size_t end = std::min(all.size(), first + steps);
            following.insert(following.end(), all.begin() + first + 1,
                             all.begin() + end);
            segments.resize(following.size(), static_cast<int64_t>(i));
            last.push_back(all[end - 1]);
            EXPECT_EQ(plan->context[1].segments.at(i), static_cast<int64_t>(i));
          }
          ASSERT_THAT(plan->context, SizeIs(2));
          EXPECT_EQ(plan->context[0].rows, following);
          EXPECT_EQ(plan->context[0].segments, segments);
          EXPECT_THAT(plan->context[0].mask, IsEmpty());
          EXPECT_EQ(plan->context[1].rows, last);
          EXPECT_THAT(plan->context[1].mask, IsEmpty());
        });
  }
}

// The frames of each row that was drawn: its slots, negative (~slot) where the
// mask is 0.
std::map<Slot, std::vector<Slot>> FramesOf(const SamplePlan& plan) {
  std::map<Slot, std::vector<Slot>> frames;
  const SamplePlan::Context& before = plan.context[0];
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    std::vector<Slot> stack;
    for (size_t k = 0; k < before.rows.size(); ++k) {
      if (before.segments[k] != static_cast<int64_t>(i)) continue;
      const bool is_there = before.mask.empty() || before.mask[k] == 1;
      stack.push_back(is_there ? before.rows[k] : ~before.rows[k]);
    }
    stack.push_back(plan.draws[i].slot);
    frames[plan.draws[i].slot] = stack;
  }
  return frames;
}

TEST(WindowUnitTest, T5_FramesOfAnotherEpisodeAreMasked) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  const auto sampler =
      AttachTo(storage, Over(MakeUniformSelector(), {.frames = 3}));
  storage.Append(0, {{}, {}, {.is_end = true}, {}, {}, {}});
  const SamplePlan plan = PlanOf(*sampler, 200, 1, 0);
  EXPECT_EQ(plan.context[0].mask.size(), plan.context[0].rows.size());
  EXPECT_THAT(FramesOf(plan), ElementsAre(Pair(0, ElementsAre(~0, ~0, 0)),
                                          Pair(1, ElementsAre(~0, 0, 1)),
                                          Pair(2, ElementsAre(0, 1, 2)),
                                          Pair(3, ElementsAre(~3, ~3, 3)),
                                          Pair(4, ElementsAre(~3, 3, 4)),
                                          Pair(5, ElementsAre(3, 4, 5))));
}

TEST(WindowUnitTest, EvictedFramesAreMaskedAndOneFrameNeedsNoOther) {
  StorageModel storage({.count = 1, .capacity = 3}, {.ids = false});
  const auto two =
      AttachTo(storage, Over(MakeUniformSelector(), {.frames = 2}));
  const auto one =
      AttachTo(storage, Over(MakeUniformSelector(), {.frames = 1}));
  storage.Append(0, std::vector<StorageModel::Value>(4));
  EXPECT_THAT(
      FramesOf(PlanOf(*two, 100, 1, 0)),
      ElementsAre(Pair(0, ElementsAre(2, 0)), Pair(1, ElementsAre(~1, 1)),
                  Pair(2, ElementsAre(1, 2))));
  EXPECT_THAT(PlanOf(*one, 100, 1, 0).context[0].rows, IsEmpty());
}

TEST(WindowUnitTest, FramesOfRandomHistoriesAreTheRowsBefore) {
  for (const int64_t frames : {2, 5}) {
    ForPlansOverHistories(
        60, 16, [&] { return Over(MakeUniformSelector(), {.frames = frames}); },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          ASSERT_EQ(plan == nullptr, rows.all().empty());
          if (plan == nullptr) return;
          std::vector<Slot> wanted;
          std::vector<int64_t> segments;
          std::vector<uint8_t> mask;
          for (size_t i = 0; i < plan->draws.size(); ++i) {
            const Slot slot = plan->draws[i].slot;
            for (int64_t back = frames - 1; back > 0; --back) {
              const int64_t at = rows.OffsetOf(slot) - back;
              wanted.push_back(
                  rows.TrajectoryOf(slot)[std::max<int64_t>(at, 0)]);
              segments.push_back(static_cast<int64_t>(i));
              mask.push_back(at >= 0 ? 1 : 0);
            }
          }
          if (std::find(mask.begin(), mask.end(), 0) == mask.end()) {
            mask.clear();
          }
          EXPECT_THAT(plan->rows, IsEmpty());
          ASSERT_EQ(plan->context.size(), 1u);
          EXPECT_EQ(plan->context[0].rows, wanted);
          EXPECT_EQ(plan->context[0].segments, segments);
          EXPECT_EQ(plan->context[0].mask, mask);
        });
  }
}

TEST(WindowUnitTest, NumbersOutOfRangeAreRefused) {
  EXPECT_THAT(MakeWindowUnit({.steps = -1}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "MakeWindowUnit: steps: got -1, want [1, 16777216], or "
                       "0 for none"));
  EXPECT_THAT(MakeWindowUnit({.frames = INT64_MAX}).status(),
              IsInvalidArgument("MakeWindowUnit: frames: got 9223372"));
  EXPECT_THAT(MakeWindowUnit({}).status(),
              IsInvalidArgument("frames and steps: got 0 and 0"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto unit,
                            MakeWindowUnit({.frames = 1 << 20}));
  EXPECT_THAT(unit->NumAnchors(16), IsOkAndHolds(16));
  EXPECT_THAT(unit->NumAnchors(17),
              IsInvalidArgument("batch size: got 17, want [1, 16] where a "
                                "draw has 1 rows of the batch and up to "
                                "1048575 beside them"));
}

}  // namespace
}  // namespace rill
