// SPDX-License-Identifier: Apache-2.0
// The rows beside each item, over every unit that can have them, against a look
// at all rows.
#include "rill/samplers/units/row_windows.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kBatch = 24;
constexpr RowWindows kWindows = {.frames = 3, .steps = 4};

struct UnitCase {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Unit>>(const RowWindows&)> make;
};

std::vector<UnitCase> Units() {
  return {
      {"rows",
       [](const RowWindows& windows) { return MakeWindowUnit(windows); }},
      {"strict slices",
       [](const RowWindows& windows) {
         return MakeSliceUnit({.length = 3, .windows = windows});
       }},
      {"short slices",
       [](const RowWindows& windows) {
         return MakeSliceUnit(
             {.length = 4, .is_strict = false, .windows = windows});
       }},
      {"padded slices with spans",
       [](const RowWindows& windows) {
         return MakeSliceUnit({.length = 3,
                               .is_padded = true,
                               .span_left = 2,
                               .span_right = 1,
                               .windows = windows});
       }},
      {"padded sequences",
       [](const RowWindows& windows) {
         return MakeSequenceUnit({.length = 3,
                                  .burn_in = 2,
                                  .bootstrap = 1,
                                  .period = 2,
                                  .windows = windows});
       }},
      {"short sequences",
       [](const RowWindows& windows) {
         return MakeSequenceUnit({.length = 3,
                                  .burn_in = 1,
                                  .end = SequenceEnd::kStop,
                                  .windows = windows});
       }},
      {"shifted sequences",
       [](const RowWindows& windows) {
         return MakeSequenceUnit({.length = 3,
                                  .burn_in = 1,
                                  .end = SequenceEnd::kShift,
                                  .windows = windows});
       }},
  };
}

// A row of the batch and whether it is real.
struct BatchRow {
  Slot slot = 0;
  bool is_real = true;
};

// The rows of each draw.
std::vector<std::vector<BatchRow>> RowsOfDraws(const SamplePlan& plan) {
  std::vector<std::vector<BatchRow>> draws(plan.draws.size());
  if (plan.rows.empty()) {
    for (size_t i = 0; i < draws.size(); ++i) {
      draws[i] = {{.slot = plan.draws[i].slot}};
    }
  }
  for (size_t k = 0; k < plan.rows.size(); ++k) {
    draws.at(plan.segments[k])
        .push_back({.slot = plan.rows[k],
                    .is_real = plan.mask.empty() || plan.mask[k] != 0});
  }
  return draws;
}

void ExpectList(const SamplePlan::Context& got,
                const SamplePlan::Context& want) {
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.segments, want.segments);
  std::vector<uint8_t> mask = want.mask;
  if (std::find(mask.begin(), mask.end(), 0) == mask.end()) mask.clear();
  EXPECT_EQ(got.mask, mask);
}

void ExpectWindows(const SamplePlan& plan, const RowsOfTrajectories& rows) {
  SamplePlan::Context before, behind, ends;
  const auto add = [](Slot slot, size_t draw, SamplePlan::Context* list) {
    list->rows.push_back(slot);
    list->segments.push_back(static_cast<int64_t>(draw));
  };
  const std::vector<std::vector<BatchRow>> draws = RowsOfDraws(plan);
  for (size_t i = 0; i < draws.size(); ++i) {
    std::vector<Slot> real;
    for (const BatchRow& row : draws[i]) {
      if (row.is_real) real.push_back(row.slot);
    }
    ASSERT_FALSE(real.empty());
    const std::vector<Slot>& all = rows.TrajectoryOf(real.front());
    const int64_t count = static_cast<int64_t>(all.size());
    for (int64_t back = kWindows.frames - 1; back > 0; --back) {
      const int64_t at = rows.OffsetOf(real.front()) - back;
      add(all[std::max<int64_t>(at, 0)], i, &before);
      before.mask.push_back(at >= 0 ? 1 : 0);
    }
    for (int64_t k = 1; k < kWindows.steps; ++k) {
      const int64_t at = rows.OffsetOf(real.back()) + k;
      if (at < count) add(all[at], i, &behind);
    }
    for (const BatchRow& row : draws[i]) {
      const int64_t at = rows.OffsetOf(row.slot) + kWindows.steps - 1;
      add(all[std::min(at, count - 1)], i, &ends);
    }
  }
  ASSERT_EQ(plan.context.size(), 3u);
  ExpectList(plan.context[0], before);
  ExpectList(plan.context[1], behind);
  ExpectList(plan.context[2], ends);
}

TEST(RowWindowsTest, AnyUnitPlansTheRowsAroundItsOwn) {
  for (const UnitCase& unit : Units()) {
    SCOPED_TRACE(unit.name);
    int64_t plans = 0;
    ForPlansOverHistories(
        40, kBatch,
        [&] {
          return *MakeSampler(MakeUniformSelector(), *unit.make(kWindows),
                              "Windows");
        },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          if (plan == nullptr) return;
          ++plans;
          ExpectWindows(*plan, rows);
        });
    EXPECT_GT(plans, 200);
  }
}

TEST(RowWindowsTest, TheRowsOfAPlanDoNotDependOnThoseBesideThem) {
  for (const UnitCase& unit : Units()) {
    if (unit.name == "rows") continue;
    SCOPED_TRACE(unit.name);
    std::vector<SamplePlan> plans[2];
    for (const bool has_windows : {false, true}) {
      ForPlansOverHistories(
          10, kBatch,
          [&] {
            return *MakeSampler(
                MakeUniformSelector(),
                *unit.make(has_windows ? kWindows : RowWindows{}), "Windows");
          },
          [&](const SamplePlan* plan, const RowsOfTrajectories&) {
            plans[has_windows].push_back(plan == nullptr ? SamplePlan()
                                                         : *plan);
          });
    }
    ASSERT_EQ(plans[0].size(), plans[1].size());
    for (size_t i = 0; i < plans[0].size(); ++i) {
      EXPECT_EQ(plans[0][i].draws, plans[1][i].draws);
      EXPECT_EQ(plans[0][i].rows, plans[1][i].rows);
      EXPECT_EQ(plans[0][i].mask, plans[1][i].mask);
      EXPECT_THAT(plans[0][i].context, IsEmpty());
    }
  }
}

TEST(RowWindowsTest, UnitsSayWhichListsTheyPlan) {
  for (const UnitCase& unit : Units()) {
    SCOPED_TRACE(unit.name);
    EXPECT_EQ((*unit.make(kWindows))->traits().layout.ContextString(),
              "frames before (2 rows), steps behind (3 rows), window ends (1 "
              "row)");
    EXPECT_EQ((*unit.make({.steps = 2}))->traits().layout.ContextString(),
              "steps behind (1 row), window ends (1 row)");
  }
}

TEST(RowWindowsTest, NumbersOutOfRangeAreRefusedByEveryUnit) {
  for (const UnitCase& unit : Units()) {
    SCOPED_TRACE(unit.name);
    EXPECT_THAT(unit.make({.frames = -1}).status(),
                IsInvalidArgument("frames: got -1"));
    EXPECT_THAT(unit.make({.steps = Sampler::kMaxBatchSize + 1}).status(),
                IsInvalidArgument("steps: got 16777217"));
    EXPECT_THAT(
        (*unit.make({.frames = Sampler::kMaxBatchSize}))->NumAnchors(24),
        IsInvalidArgument("batch size: got 24, want [1, "));
  }
}

TEST(RowWindowsTest, SequencesOfRowsThatAreNotConsecutiveHaveNone) {
  EXPECT_THAT(
      MakeSequenceUnit({.length = 3, .dilation = 2, .windows = {.steps = 2}}),
      IsInvalidArgument("with a dilation of 2, want none"));
  EXPECT_THAT(MakeSequenceUnit({.length = 3,
                                .end = SequenceEnd::kIncludeReset,
                                .windows = {.frames = 2}}),
              IsInvalidArgument("with kIncludeReset, want none"));
}

}  // namespace
}  // namespace rill
