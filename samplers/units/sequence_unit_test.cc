// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/sequence_unit.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
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
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kSeed = 20240722;
constexpr double kFalseAlarms = 1e-9;

std::unique_ptr<Sampler> Over(std::unique_ptr<Selector> selector,
                              const SequenceUnitOptions& options) {
  return *MakeSampler(std::move(selector), *MakeSequenceUnit(options),
                      "Sequence");
}

constexpr SequenceUnitOptions kPadded = {
    .length = 3, .burn_in = 2, .period = 2};
constexpr SequenceUnitOptions kStrict = {.length = 2,
                                         .burn_in = 1,
                                         .dilation = 2,
                                         .end = SequenceEnd::kStrict,
                                         .needs_burn_in = true};
constexpr SequenceUnitOptions kStopped = {
    .length = 3, .burn_in = 1, .period = 3, .end = SequenceEnd::kStop};
constexpr SequenceUnitOptions kShifted = {.length = 3,
                                          .burn_in = 1,
                                          .bootstrap = 2,
                                          .period = 2,
                                          .end = SequenceEnd::kShift};

}  // namespace

// A lane may hold rows of a period's inside only.
INSTANTIATE_SAMPLER_CONFORMANCE(
    UniformPadded, {.make = [] { return Over(MakeUniformSelector(), kPadded); },
                    .plans = {.rows_per_item = 5, .may_find_nothing = true}});
INSTANTIATE_SAMPLER_CONFORMANCE(
    PrioritizedStrict,
    {.make = [] { return Over(*PrioritizedSelector::Create({}), kStrict); },
     .draws_all = false,  // Not of episodes that are too short.
     .plans = {.rows_per_item = 3, .may_find_nothing = true}});
INSTANTIATE_SAMPLER_CONFORMANCE(
    PrioritizedPadded,
    {.make = [] { return Over(*PrioritizedSelector::Create({}), kPadded); },
     .plans = {.rows_per_item = 5, .may_find_nothing = true}});
INSTANTIATE_SAMPLER_CONFORMANCE(
    WithoutReplacementPadded,
    {.make = [] { return Over(MakeWithoutReplacementSelector(), kPadded); },
     .is_stateful = true,
     .plans = {.rows_per_item = 5, .may_find_nothing = true}});

namespace {

// Each draw's rows, by its row; negative (~slot) where the mask is 0.
std::map<Slot, std::vector<Slot>> SequencesOf(const SamplePlan& plan) {
  std::map<Slot, std::vector<Slot>> sequences;
  for (const Draw& draw : plan.draws) sequences[draw.slot].clear();
  std::vector<std::vector<Slot>> rows(plan.draws.size());
  for (size_t k = 0; k < plan.rows.size(); ++k) {
    const bool is_there = plan.mask.empty() || plan.mask[k] == 1;
    rows[plan.segments[k]].push_back(is_there ? plan.rows[k] : ~plan.rows[k]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    sequences[plan.draws[i].slot] = rows[i];
  }
  return sequences;
}

class SequenceUnitTest : public ::testing::Test {
 protected:
  // One lane: an episode of 7 rows and one of 3 that goes on.
  SequenceUnitTest() : storage_({.count = 1, .capacity = 16}, {.ids = false}) {
    std::vector<StorageModel::Value> rows(10);
    rows[6].is_end = true;
    storage_.Append(0, rows);
  }
  std::map<Slot, std::vector<Slot>> Sequences(
      const SequenceUnitOptions& options) {
    const auto sampler =
        AttachTo(storage_, Over(MakeUniformSelector(), options));
    return SequencesOf(PlanOf(
        *sampler, 200 * (options.burn_in + options.length + options.bootstrap),
        kSeed, 0));
  }

  StorageModel storage_;
};

TEST_F(SequenceUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Unit> sequences,
      MakeSequenceUnit({.length = 4, .burn_in = 2, .period = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      MakeSampler(MakeUniformSelector(), std::move(sequences), "Sequences"));
  storage_.AddObserver(sampler->observer());
  const SamplePlan plan = PlanOf(*sampler, 200 * 6, kSeed, 0);
  EXPECT_EQ(plan.rows.size(), 1200u);
  EXPECT_THAT(SequencesOf(plan),
              ElementsAre(Pair(0, ElementsAre(~0, ~0, 0, 1, 2, 3)),
                          Pair(2, ElementsAre(0, 1, 2, 3, 4, 5)),
                          Pair(4, ElementsAre(2, 3, 4, 5, 6, ~6)),
                          Pair(6, ElementsAre(4, 5, 6, ~6, ~6, ~6)),
                          Pair(7, ElementsAre(~7, ~7, 7, 8, 9, ~9)),
                          Pair(9, ElementsAre(7, 8, 9, ~9, ~9, ~9))));
}

TEST_F(SequenceUnitTest, EndsAsItIsTold) {
  EXPECT_THAT(
      Sequences({.length = 3, .period = 3, .end = SequenceEnd::kStop}),
      ElementsAre(Pair(0, ElementsAre(0, 1, 2)), Pair(3, ElementsAre(3, 4, 5)),
                  Pair(6, ElementsAre(6)), Pair(7, ElementsAre(7, 8, 9))));
  EXPECT_THAT(
      Sequences({.length = 3, .period = 3, .end = SequenceEnd::kStrict}),
      ElementsAre(Pair(0, ElementsAre(0, 1, 2)), Pair(3, ElementsAre(3, 4, 5)),
                  Pair(7, ElementsAre(7, 8, 9))));
}

// TorchRL's "stop".
TEST_F(SequenceUnitTest, ShiftedOnesEndWithTheirTrajectory) {
  EXPECT_THAT(Sequences({.length = 4, .period = 3, .end = SequenceEnd::kShift}),
              ElementsAre(Pair(0, ElementsAre(0, 1, 2, 3)),
                          Pair(3, ElementsAre(3, 4, 5, 6)),
                          Pair(6, ElementsAre(3, 4, 5, 6)),
                          Pair(7, ElementsAre(7, 8, 9, ~9))));
  EXPECT_THAT(Sequences({.length = 2,
                         .burn_in = 1,
                         .bootstrap = 1,
                         .period = 6,
                         .end = SequenceEnd::kShift}),
              ElementsAre(Pair(0, ElementsAre(~0, 0, 1, 2)),
                          Pair(6, ElementsAre(4, 5, 6, ~6)),
                          Pair(7, ElementsAre(~7, 7, 8, 9))));
  EXPECT_THAT(Sequences({.length = 2,
                         .burn_in = 6,
                         .period = 6,
                         .end = SequenceEnd::kShift,
                         .needs_burn_in = true}),
              ElementsAre(Pair(6, ElementsAre(0, 1, 2, 3, 4, 5, 6, ~6))));
}

// TorchRL's "include_reset".
TEST_F(SequenceUnitTest, SequencesMayGoOnBehindTheirTrajectory) {
  EXPECT_THAT(Sequences({.length = 3,
                         .burn_in = 1,
                         .period = 3,
                         .end = SequenceEnd::kIncludeReset}),
              ElementsAre(Pair(0, ElementsAre(~0, 0, 1, 2)),
                          Pair(3, ElementsAre(2, 3, 4, 5)),
                          Pair(6, ElementsAre(5, 6, 7, 8)),
                          Pair(7, ElementsAre(6, 7, 8, 9))));
  EXPECT_THAT(
      Sequences({.length = 2,
                 .bootstrap = 1,
                 .dilation = 2,
                 .period = 6,
                 .end = SequenceEnd::kIncludeReset}),
      ElementsAre(Pair(0, ElementsAre(0, 2, 4)), Pair(6, ElementsAre(6, 8, ~9)),
                  Pair(7, ElementsAre(7, 9, ~9))));
}

// A ring of 6 rows that holds steps 4 .. 9; an episode ends with step 6.
TEST_F(SequenceUnitTest, SequencesDoNotGoOnBehindTheNewestRow) {
  StorageModel storage({.count = 1, .capacity = 6}, {.ids = false});
  const auto sampler = AttachTo(
      storage,
      Over(MakeUniformSelector(),
           {.length = 3, .burn_in = 2, .end = SequenceEnd::kIncludeReset}));
  for (int i = 0; i < 10; ++i) storage.Append(0, {{.is_end = i == 6}});
  EXPECT_THAT(SequencesOf(PlanOf(*sampler, 1000, kSeed, 0)),
              ElementsAre(Pair(0, ElementsAre(4, 5, 0, 1, 2)),
                          Pair(1, ElementsAre(5, 0, 1, 2, 3)),
                          Pair(2, ElementsAre(0, 1, 2, 3, ~3)),
                          Pair(3, ElementsAre(1, 2, 3, ~3, ~3)),
                          Pair(4, ElementsAre(~4, ~4, 4, 5, 0)),
                          Pair(5, ElementsAre(~4, 4, 5, 0, 1))));
}

TEST_F(SequenceUnitTest, BurnInMayBeRequired) {
  EXPECT_THAT(Sequences({.length = 2,
                         .burn_in = 2,
                         .period = 2,
                         .end = SequenceEnd::kStrict,
                         .needs_burn_in = true}),
              ElementsAre(Pair(2, ElementsAre(0, 1, 2, 3)),
                          Pair(4, ElementsAre(2, 3, 4, 5))));
}

TEST_F(SequenceUnitTest, DilationTakesEveryNthRow) {
  EXPECT_THAT(
      Sequences({.length = 3, .burn_in = 1, .dilation = 2, .period = 3}),
      ElementsAre(Pair(0, ElementsAre(~0, 0, 2, 4)),
                  Pair(3, ElementsAre(1, 3, 5, ~5)),
                  Pair(6, ElementsAre(4, 6, ~6, ~6)),
                  Pair(7, ElementsAre(~7, 7, 9, ~9))));
}

// A ring of 6 rows that holds steps 4 .. 9.
TEST_F(SequenceUnitTest, EvictionDoesNotMoveThePeriod) {
  StorageModel storage({.count = 1, .capacity = 6}, {.ids = false});
  const auto sampler = AttachTo(
      storage,
      Over(MakeUniformSelector(), {.length = 2, .burn_in = 1, .period = 3}));
  for (int i = 0; i < 10; ++i) storage.Append(0, {{}});
  EXPECT_THAT(SequencesOf(PlanOf(*sampler, 300, kSeed, 0)),
              ElementsAre(Pair(0, ElementsAre(5, 0, 1)),
                          Pair(3, ElementsAre(2, 3, ~3))));
}

TEST_F(SequenceUnitTest, PicksAreUniformOverTheAnchors) {
  const auto sampler = AttachTo(
      storage_, Over(MakeUniformSelector(), {.length = 1, .period = 2}));
  std::vector<double> wanted(10, 0.0);
  for (const int slot : {0, 2, 4, 6, 7, 9}) wanted[slot] = 1.0 / 6;
  EXPECT_THAT(CountDraws(*sampler, 10, 200, kSeed, /*batches=*/50),
              DistributedAs(wanted, kFalseAlarms));
}

// The rows of a sequence by the plain words of the header.
std::vector<Slot> WantedRows(const SequenceUnitOptions& options,
                             const std::vector<Slot>& trajectory,
                             int64_t offset) {
  const auto rows = static_cast<int64_t>(trajectory.size());
  if (options.end == SequenceEnd::kShift) {
    while (offset > 0 &&
           offset + (options.length - 1) * options.dilation >= rows) {
      --offset;
    }
  }
  std::vector<Slot> wanted;
  int64_t first = offset;
  while (first - options.dilation >= 0 &&
         (offset - first) / options.dilation < options.burn_in) {
    first -= options.dilation;
  }
  Slot last = trajectory[offset];
  for (int64_t k = -options.burn_in; k < options.length + options.bootstrap;
       ++k) {
    const int64_t at = offset + k * options.dilation;
    if (at < 0) {
      wanted.push_back(~trajectory[first]);
    } else if (at < rows) {
      wanted.push_back(last = trajectory[at]);
    } else if (options.end != SequenceEnd::kStop) {
      wanted.push_back(~last);
    }
  }
  return wanted;
}

TEST_F(SequenceUnitTest, RowsOfRandomHistoriesAreThoseOfOneTrajectory) {
  for (const SequenceUnitOptions& options :
       {kPadded, kStrict, kStopped, kShifted}) {
    ForPlansOverHistories(
        60, 8 * (options.burn_in + options.length + options.bootstrap),
        [&] { return Over(MakeUniformSelector(), options); },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          if (plan == nullptr) return;
          EXPECT_EQ(plan->draws.size(), 8u);
          EXPECT_THAT(plan->context, IsEmpty());
          for (const auto& [slot, sequence] : SequencesOf(*plan)) {
            EXPECT_EQ(sequence, WantedRows(options, rows.TrajectoryOf(slot),
                                           rows.OffsetOf(slot)));
          }
        });
  }
}

TEST_F(SequenceUnitTest, SaysWhatIsWrong) {
  const auto refuses = [](const SequenceUnitOptions& options,
                          const std::string& message) {
    EXPECT_THAT(MakeSequenceUnit(options).status(), IsInvalidArgument(message));
  };
  refuses({}, "MakeSequenceUnit: length: got 0, want [1, 16777216]");
  refuses({.length = 1 << 24, .burn_in = 1}, "burn_in: got 1, want [0, 0]");
  refuses({.length = 1, .dilation = 0}, "dilation: got 0, want [1, ");
  refuses({.length = 1, .period = INT64_MAX}, "period: got 92233");
  refuses({.length = 1 << 23, .burn_in = 1 << 23, .bootstrap = 1},
          "bootstrap: got 1, want [0, 0]");
  refuses(
      {.length = 1, .end = SequenceEnd::kIncludeReset, .needs_burn_in = true},
      "needs_burn_in: got true with kIncludeReset");
  const auto sampler = AttachTo(
      storage_, Over(MakeUniformSelector(), {.length = 4,
                                             .burn_in = 4,
                                             .period = 4,
                                             .end = SequenceEnd::kStrict,
                                             .needs_burn_in = true}));
  SamplePlan plan;
  EXPECT_THAT(
      sampler->Plan({.batch_size = 8}, &plan),
      IsFailedPrecondition("trajectories: got 2 of 3 to 7 rows, want one "
                           "of 8 or more around a multiple of 4 steps"));
  EXPECT_THAT(sampler->Plan({.batch_size = 9}, &plan),
              IsInvalidArgument("got 9, want a multiple of 8, the rows of a "
                                "sequence (burn_in + length + bootstrap)"));
}

}  // namespace
}  // namespace rill
