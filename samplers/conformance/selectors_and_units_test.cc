// SPDX-License-Identifier: Apache-2.0
// Every selector over every unit. A name like S19 is the number of the TorchRL
// behaviour that a test repeats.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/hindsight_unit.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/trajectory_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

struct SelectorCase {
  std::string name;
  std::function<std::unique_ptr<Selector>()> make;
  bool picks_by_unit = false;
};

std::unique_ptr<Selector> Mix(std::unique_ptr<Selector> a,
                              std::unique_ptr<Selector> b) {
  std::vector<MixturePart> parts;
  parts.push_back({.selector = std::move(a), .share = 1});
  parts.push_back({.selector = std::move(b), .share = 1});
  return *MakeMixtureSelector(std::move(parts));
}

std::vector<SelectorCase> Selectors() {
  return {
      {"Uniform", MakeUniformSelector, true},
      {"Recent", MakeRecentSelector, true},
      {"Fifo", MakeFifoSelector},
      {"Lifo", MakeLifoSelector},
      {"MinHeap", [] { return *MakeMinHeapSelector(); }},
      {"MaxHeap", [] { return *MakeMaxHeapSelector(); }},
      {"Staleness", [] { return MakeStalenessSelector(); }},
      {"WithoutReplacement", [] { return MakeWithoutReplacementSelector(); }},
      {"Prioritized", [] { return *PrioritizedSelector::Create({}); }},
      {"Consuming",
       [] { return *MakeConsumingSelector({.max_times_sampled = 50}); }},
      {"ConsumingQueue",
       [] { return *MakeConsumingSelector({.inner = MakeFifoSelector()}); }},
      {"MixtureWithUniform",
       [] { return Mix(MakeUniformSelector(), MakeLifoSelector()); }, true},
      {"MixtureOfOthers",
       [] {
         return Mix(MakeStalenessSelector(), MakeWithoutReplacementSelector());
       }},
  };
}

struct UnitCase {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Unit>>()> make;
  bool picks_by_rule = false;
};

std::vector<UnitCase> Units() {
  return {
      {"Transition", [] { return MakeTransitionUnit(); }},
      {"Slice", [] { return MakeSliceUnit({.length = 2}); }},
      {"SliceOfRows",
       [] {
         return MakeSliceUnit({.length = 2, .starts = SliceStarts::kRows});
       },
       true},
      {"SliceOfRecent",
       [] {
         return MakeSliceUnit({.length = 2, .starts = SliceStarts::kRecent});
       },
       true},
      {"SliceOfEpisodeStarts",
       [] {
         return MakeSliceUnit(
             {.length = 2, .starts = SliceStarts::kEpisodeStarts});
       }},
      {"SliceOfTrajectory",
       [] {
         return MakeSliceUnit(
             {.length = 2, .starts = SliceStarts::kOnePerTrajectory});
       }},
      {"Trajectory", [] { return MakeTrajectoryUnit(); }},
      {"NStep", [] { return MakeWindowUnit({.steps = 3}); }},
      {"FrameStack", [] { return MakeWindowUnit({.frames = 3}); }},
      {"FrameStackNStep",
       [] { return MakeWindowUnit({.frames = 3, .steps = 3}); }},
      {"Hindsight", [] { return MakeHindsightUnit(); }},
      {"Sequence",
       [] {
         return MakeSequenceUnit({.length = 3, .burn_in = 1, .period = 2});
       }},
  };
}

// Live rows, of the trajectory of their draw where the unit is of one, and in a
// list no row twice for a draw but to pad.
void ExpectRows(const RowsOfTrajectories& rows, const SamplePlan& plan,
                absl::Span<const Slot> slots,
                absl::Span<const int64_t> segments,
                absl::Span<const uint8_t> mask) {
  ASSERT_EQ(slots.size(), segments.size());
  std::vector<Slot> of_draw;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (k > 0 && segments[k] != segments[k - 1]) of_draw.clear();
    ASSERT_TRUE(rows.IsLive(slots[k])) << slots[k];
    const Slot pick = plan.draws.at(segments[k]).slot;
    EXPECT_EQ(&rows.TrajectoryOf(slots[k]), &rows.TrajectoryOf(pick));
    if (!mask.empty() && mask[k] == 0) continue;
    EXPECT_THAT(of_draw, testing::Not(testing::Contains(slots[k])));
    of_draw.push_back(slots[k]);
  }
}

TEST(SelectorsAndUnitsTest, S19_AnyPairPlansTheRowsOfItsItemsOnceEach) {
  constexpr int64_t kBatch = 8;
  int64_t plans = 0;
  for (const SelectorCase& selector : Selectors()) {
    for (const UnitCase& unit : Units()) {
      SCOPED_TRACE(selector.name + " over " + unit.name);
      if (unit.picks_by_rule && !selector.picks_by_unit) continue;
      const auto make = [&] {
        return *MakeSampler(selector.make(), *unit.make(), "Pair");
      };
      ForPlansOverHistories(
          4, kBatch, make,
          [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
            if (plan == nullptr) return;
            ++plans;
            for (const Draw& draw : plan->draws) {
              ASSERT_TRUE(rows.IsLive(draw.slot)) << draw.slot;
            }
            ExpectRows(rows, *plan, plan->rows, plan->segments, plan->mask);
            for (const SamplePlan::Context& list : plan->context) {
              ExpectRows(rows, *plan, list.rows, list.segments, list.mask);
            }
          });
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(plans, 10'000);  // The histories are not all empty.
}

// A selector that names anchors itself makes nothing of a unit's rule.
TEST(SelectorsAndUnitsTest, WhatMakesNoSenseIsRefusedWithAReason) {
  for (const SelectorCase& selector : Selectors()) {
    for (const UnitCase& unit : Units()) {
      SCOPED_TRACE(selector.name + " over " + unit.name);
      const absl::Status status =
          MakeSampler(selector.make(), *unit.make(), "Pair").status();
      if (!unit.picks_by_rule || selector.picks_by_unit) {
        RILL_EXPECT_OK(status);
        continue;
      }
      EXPECT_THAT(
          status,
          StatusIs(absl::StatusCode::kInvalidArgument,
                   testing::HasSubstr("want one that leaves it to the unit")));
    }
  }
}

}  // namespace
}  // namespace rill
