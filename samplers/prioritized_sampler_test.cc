// SPDX-License-Identifier: Apache-2.0
// A name like P1 is the number of the TorchRL behaviour that a test repeats.
#include "rill/samplers/prioritized_sampler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> Make(const PrioritizedOptions& options = {}) {
  return *MakePrioritizedSampler(options);
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Prioritized, {.make = [] { return Make(); }});
INSTANTIATE_SAMPLER_CONFORMANCE(PrioritizedStratified, {.make = [] {
                                  return Make(
                                      {.epsilon = 0, .stratified = true});
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(
    PrioritizedMaxInBuffer,
    {.make = [] { return Make({.new_rows = NewRowPriority::kMaxInBuffer}); }});

namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;

constexpr uint64_t kSeed = 11;

// A sampler over one lane of `rows` rows.
struct Buffer {
  explicit Buffer(int64_t rows, const PrioritizedOptions& options = {},
                  int64_t capacity = 0)
      : storage({.count = 1, .capacity = std::max(capacity, rows)}),
        sampler(*MakePrioritizedSampler(options, &selector)) {
    storage.AddObserver(sampler->observer());
    if (rows > 0) storage.Append(rows);
  }
  // Updates the rows that are there now.
  absl::Status Update(const std::vector<Slot>& slots,
                      const std::vector<float>& priorities) {
    std::vector<Draw> draws;
    for (const Slot slot : slots) {
      draws.push_back({.slot = slot, .generation = storage.Generation(slot)});
    }
    return sampler->UpdatePriorities(draws, priorities);
  }
  absl::Status UpdateAll(const std::vector<float>& priorities) {
    return Update(storage.Live(), priorities);
  }
  std::vector<Draw> Draws(int64_t count, uint64_t batch = 0) {
    return PlanOf(*sampler, count, kSeed, batch).draws;
  }
  std::vector<int64_t> Counts(uint64_t batches = 512) {
    return CountDraws(*sampler, storage.lanes().num_slots(), 64, kSeed,
                      batches);
  }
  // The weight of each slot that is among many draws.
  std::map<Slot, float> Weights() {
    std::map<Slot, float> weights;
    for (const Draw& draw : Draws(4096)) weights[draw.slot] = draw.weight;
    return weights;
  }

  PrioritizedSelector* selector;
  StorageSimulator storage;
  std::unique_ptr<Sampler> sampler;
};

std::vector<double> Shares(const std::vector<double>& priorities,
                           double alpha) {
  double total = 0;
  for (const double priority : priorities) total += std::pow(priority, alpha);
  std::vector<double> shares;
  for (const double priority : priorities) {
    shares.push_back(std::pow(priority, alpha) / total);
  }
  return shares;
}

TEST(PrioritizedSamplerTest, Example) {
  StorageSimulator storage({.count = 1, .capacity = 100});
  PrioritizedSelector* exponents;
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Sampler> sampler,
      MakePrioritizedSampler({.alpha = 0.7, .beta = 0.5}, &exponents));
  storage.AddObserver(sampler->observer());
  storage.Append(50);
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
  EXPECT_EQ(plan.draws.size(), 32u);
  RILL_ASSERT_OK(
      sampler->UpdatePriorities(plan.draws, std::vector<float>(32, 0.5f)));
  RILL_ASSERT_OK(exponents->SetBeta(0.6));
}

// --- TorchRL's rules ---------------------------------------------------------

TEST(PrioritizedSamplerTest, P1_NewRowsWeighTheSame) {
  Buffer buffer(10);
  EXPECT_THAT(buffer.Counts(), DistributedAs(UniformProbabilities(10), 1e-9));
  for (const Draw& draw : buffer.Draws(64)) EXPECT_EQ(draw.weight, 1.0f);
  // Their raw priority is 1: that of a row that is given it.
  RILL_ASSERT_OK(buffer.Update({3}, {1.0f}));
  for (const Draw& draw : buffer.Draws(64)) EXPECT_EQ(draw.weight, 1.0f);
}

TEST(PrioritizedSamplerTest, P2_OtherNumberOfPrioritiesIsRefused) {
  Buffer buffer(10);
  EXPECT_THAT(buffer.Update({1, 2, 3}, {1, 2}),
              IsInvalidArgument("got 2 of them, want one "
                                "for each of 3 draws"));
  RILL_EXPECT_OK(buffer.Update({1, 2, 3}, {2, 2, 2}));
}

TEST(PrioritizedSamplerTest, P3_LargePriorityMakesUpAllDraws) {
  Buffer buffer(2, {.alpha = 1, .epsilon = 1e-8});
  RILL_ASSERT_OK(buffer.UpdateAll({0, 1000}));
  for (const Draw& draw : buffer.Draws(10)) EXPECT_EQ(draw.slot, 1);
}

TEST(PrioritizedSamplerTest, P4_WeightsUndoTheBias) {
  Buffer buffer(4, {.alpha = 1, .beta = 1, .epsilon = 0});
  RILL_ASSERT_OK(buffer.UpdateAll({2, 4, 8, 16}));
  EXPECT_EQ(buffer.Weights(),
            (std::map<Slot, float>{{0, 1}, {1, 0.5}, {2, 0.25}, {3, 0.125}}));
}

TEST(PrioritizedSamplerTest, P5_AlphaZeroIsUniformAndBetaZeroIsUnweighted) {
  Buffer uniform(4, {.alpha = 0, .beta = 1});
  RILL_ASSERT_OK(uniform.UpdateAll({1, 10, 100, 1000}));
  EXPECT_THAT(uniform.Counts(), DistributedAs(UniformProbabilities(4), 1e-9));
  Buffer unweighted(4, {.alpha = 1, .beta = 0});
  RILL_ASSERT_OK(unweighted.UpdateAll({1, 10, 100, 1000}));
  for (const auto& [slot, weight] : unweighted.Weights()) {
    EXPECT_EQ(weight, 1.0f) << slot;
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-0.1, kNan, HUGE_VAL}) {
    EXPECT_THAT(MakePrioritizedSampler({.alpha = bad}),
                IsInvalidArgument("alpha: got"));
    EXPECT_THAT(MakePrioritizedSampler({.beta = bad}),
                IsInvalidArgument("beta: got"));
    EXPECT_THAT(MakePrioritizedSampler({.epsilon = bad}),
                IsInvalidArgument("epsilon: got"));
    EXPECT_THAT(
        MakePrioritizedSampler({.new_row_priority = static_cast<float>(bad)}),
        IsInvalidArgument("new_row_priority: got"));
    EXPECT_THAT(unweighted.selector->SetAlpha(bad), IsInvalidArgument());
    EXPECT_THAT(unweighted.selector->SetBeta(bad), IsInvalidArgument());
  }
  EXPECT_EQ(unweighted.selector->alpha(), 1);
  EXPECT_EQ(unweighted.selector->beta(), 0);
}

TEST(PrioritizedSamplerTest, P6_LaterOfEqualRowsCountsAndMinusOneIsIgnored) {
  Buffer buffer(4, {.alpha = 1, .beta = 1, .epsilon = 0});
  RILL_ASSERT_OK(buffer.Update({2, 2, 2}, {1, 5, 3}));
  RILL_ASSERT_OK(
      buffer.sampler->UpdatePriorities({{.slot = -1}}, std::vector{1e9f}));
  EXPECT_THAT(buffer.Counts(), DistributedAs(Shares({1, 1, 3, 1}, 1), 1e-9));
  EXPECT_FLOAT_EQ(buffer.Weights()[2], 1.0f / 3);
}

TEST(PrioritizedSamplerTest, P8_WritesMayBringTheirPriorities) {
  Buffer buffer(0, {.alpha = 0.7, .beta = 1}, /*capacity=*/8);
  buffer.storage.Append(0, 1, 4, {0, 1, 2, 3});
  std::map<Slot, float> weights = buffer.Weights();
  // v = 2.5e-6, 1, 1.6245, 2.1577; the first is nearly never drawn.
  const double smallest = std::pow(1e-8, 0.7);
  EXPECT_NEAR(smallest / weights[1], 1, 1e-6);
  EXPECT_NEAR(smallest / weights[2], 1.6245, 1e-4);
  EXPECT_NEAR(smallest / weights[3], 2.1577, 1e-4);
  // Without a priority: the largest ever given.
  buffer.storage.Append(1);
  EXPECT_EQ(buffer.Weights()[4], weights[3]);
}

TEST(PrioritizedSamplerTest, P9_FreshSamplerOnRowsThatAreThereHasDefaults) {
  StorageSimulator storage({.count = 2, .capacity = 5});
  storage.Append(7);
  auto sampler = storage.Attach(Make());
  for (const Draw& draw : PlanOf(*sampler, 64, kSeed, 0).draws) {
    EXPECT_EQ(draw.weight, 1.0f);
  }
}

TEST(PrioritizedSamplerTest, P10_BadPrioritiesAreRefusedAndNothingChanges) {
  Buffer buffer(8);
  RILL_ASSERT_OK(buffer.UpdateAll({1, 2, 3, 4, 5, 6, 7, 8}));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before,
                            buffer.sampler->SaveState());
  for (const float bad : {std::nanf(""), HUGE_VALF, -1.0f}) {
    EXPECT_THAT(buffer.Update({0, 1}, {9, bad}), IsInvalidArgument());
  }
  EXPECT_THAT(buffer.sampler->SaveState(), IsOkAndHolds(before));
}

TEST(PrioritizedSamplerTest, P11_ZeroWithoutEpsilonIsNeverDrawn) {
  Buffer buffer(6, {.alpha = 0.5, .beta = 1, .epsilon = 0});
  RILL_ASSERT_OK(buffer.UpdateAll({0, 4, 0, 16, -0.0f, 0}));
  EXPECT_THAT(buffer.Counts(),
              DistributedAs(Shares({0, 4, 0, 16, 0, 0}, 0.5), 1e-9));
  EXPECT_EQ(buffer.Weights(), (std::map<Slot, float>{{1, 1}, {3, 0.5}}));
  RILL_ASSERT_OK(buffer.selector->SetAlpha(0));
  EXPECT_THAT(buffer.Counts(),
              DistributedAs({0, 0.5, 0, 0.5, 0, 0}, /*p_value=*/1e-9));
  RILL_ASSERT_OK(buffer.Update({1, 3}, {0, 0}));
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(buffer.sampler->Plan({.batch_size = 2}, &plan),
              IsFailedPrecondition(
                  "PrioritizedSampler::Plan: sum of the priorities of 6 "
                  "rows: got 0, want > 0"));
  ExpectEqualPlans(plan, SentinelPlan());
  RILL_ASSERT_OK(buffer.Update({5}, {1}));
  for (const Draw& draw : buffer.Draws(10)) EXPECT_EQ(draw.slot, 5);
}

// Draws that are spread evenly over the sum tell shares to one draw at each
// end.
TEST(PrioritizedSamplerTest, P12_SmallPrioritiesBesideALargeOneKeepTheirShare) {
  constexpr int64_t kQuarter = 1 << 18;
  constexpr int64_t kRows = 4 * kQuarter + 1;
  constexpr int64_t kDraws = 1 << 18;
  Buffer buffer(kRows, {.alpha = 1, .epsilon = 0, .stratified = true});
  std::vector<float> priorities(kRows, 1e-4f);
  priorities.back() = 1e5f;
  RILL_ASSERT_OK(buffer.UpdateAll(priorities));
  // All small ones together: one draw in 955.
  const double small = 4 * kQuarter * double{1e-4f};
  const double wanted = kDraws * small / (small + double{1e5f});
  std::vector<int64_t> seen(5, 0);
  for (const Draw& draw : buffer.Draws(kDraws)) ++seen[draw.slot / kQuarter];
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_NEAR(static_cast<double>(seen[quarter]), wanted / 4, 2);
  }
  EXPECT_NEAR(static_cast<double>(kDraws - seen[4]), wanted, 0.01 * wanted);
}

TEST(PrioritizedSamplerTest, P13_DrawsStayInsideOfTheRows) {
  for (const int64_t power : {8, 16, 64, 512}) {
    for (const int64_t rows : {power - 1, power, power + 1}) {
      Buffer buffer(rows, {.alpha = 1, .stratified = true}, 2 * power);
      // Each row has a share of its own, the last one too.
      std::vector<int64_t> counts(rows, 0);
      for (const Draw& draw : buffer.Draws(4 * rows)) {
        ASSERT_LT(draw.slot, rows);
        ++counts[draw.slot];
      }
      EXPECT_THAT(counts, Each(Ge(1))) << rows;
    }
  }
}

// Each update moves all of the priority from one half of the rows to the other;
// a plan in the middle of one would have rows of both.
TEST(PrioritizedSamplerTest, P14_PlansSeeUpdatesWholeOrNotAtAll) {
  Buffer buffer(64, {.alpha = 1, .epsilon = 0});
  std::vector<Draw> draws;
  std::vector<float> even, odd;
  for (Slot slot = 0; slot < 64; ++slot) {
    draws.push_back({.slot = slot});
    even.push_back(slot % 2 == 0 ? 1.0f : 0.0f);
    odd.push_back(1 - even.back());
  }
  RILL_ASSERT_OK(buffer.sampler->UpdatePriorities(draws, even));
  std::atomic<bool> is_done = false;
  std::atomic<int64_t> mixed = 0, plans = 0;
  std::thread planner([&] {
    SamplePlan plan;
    for (uint64_t batch = 0; batch < 100 || !is_done; ++batch) {
      const absl::Status status = buffer.sampler->Plan(
          {.batch_size = 16, .seed = kSeed, .batch_number = batch}, &plan);
      if (!status.ok()) ++mixed;
      for (const Draw& draw : plan.draws) {
        if (draw.slot % 2 != plan.draws[0].slot % 2) ++mixed;
      }
      ++plans;
    }
  });
  for (int round = 0; round < 2000 || plans < 100; ++round) {
    RILL_EXPECT_OK(
        buffer.sampler->UpdatePriorities(draws, round % 2 == 0 ? odd : even));
  }
  is_done = true;
  planner.join();
  EXPECT_EQ(mixed, 0);
}

// Rows of several lanes are named by (lane, step).
TEST(PrioritizedSamplerTest, M4_PrioritiesOfSeveralLanesAreAddressedByLane) {
  const Lanes lanes = {.count = 3, .capacity = 4};
  StorageSimulator storage(lanes);
  auto sampler = storage.Attach(Make({.alpha = 1, .epsilon = 0}));
  storage.Append(4);
  std::vector<Draw> draws;
  std::vector<float> priorities;
  std::vector<double> want(12, 1);
  for (const auto& [lane, step] :
       {std::pair(0, 1), std::pair(2, 0), std::pair(1, 3)}) {
    draws.push_back({.slot = lanes.SlotOf(lane, step)});
    priorities.push_back(static_cast<float>(5 + lane));
    want[lane * 4 + step] = 5 + lane;
  }
  RILL_ASSERT_OK(sampler->UpdatePriorities(draws, priorities));
  EXPECT_THAT(CountDraws(*sampler, 12, 1 << 15, kSeed, /*batches=*/1),
              DistributedAs(Shares(want, 1), 1e-9));
}

// --- Beside the plain one ----------------------------------------------------

// Random histories; the fake starts with 1 as the largest priority ever given,
// so both are given one above it first.
TEST(PrioritizedSamplerTest, AgreesWithTheLinearScan) {
  const Rng rng(/*seed=*/9);
  for (uint64_t history = 0; history < 8; ++history) {
    StorageSimulator storage({.count = 2, .capacity = 9});
    auto sampler =
        storage.Attach(Make({.alpha = 0.7, .beta = 0.5, .epsilon = 0}));
    auto fake =
        storage.Attach(MakeFakePrioritizedSampler({.alpha = 0.7, .beta = 0.5}));
    storage.Append(0, 2, 1, {2, 2});
    for (uint32_t operation = 0; operation < 30; ++operation) {
      const auto lane = static_cast<int64_t>(operation % 2);
      storage.Append(lane, 1, rng.UniformInt(history, operation, 5) + 1);
      if (operation % 3 == 0) {
        storage.Overwrite({storage.Live()[1]}, /*replaces=*/operation % 2 == 0);
      }
      const SamplePlan plan = PlanOf(*fake, 8, kSeed, operation);
      const std::vector<float> priorities = PrioritiesFor(plan, operation);
      RILL_ASSERT_OK(sampler->UpdatePriorities(plan.draws, priorities));
      RILL_ASSERT_OK(fake->UpdatePriorities(plan.draws, priorities));
    }
    std::vector<int64_t> counts(18, 0), fake_counts(18, 0);
    std::map<Slot, float> weights;
    for (uint64_t batch = 0; batch < 128; ++batch) {
      for (const Draw& draw : PlanOf(*sampler, 256, kSeed, batch).draws) {
        ++counts[draw.slot];
        weights[draw.slot] = draw.weight;
      }
      for (const Draw& draw : PlanOf(*fake, 256, kSeed + 1, batch).draws) {
        ++fake_counts[draw.slot];
        ASSERT_FLOAT_EQ(weights[draw.slot], draw.weight) << draw.slot;
      }
    }
    // Two samples of one distribution: the difference has twice its variance.
    double statistic = 0;
    for (Slot slot = 0; slot < 18; ++slot) {
      const auto difference =
          static_cast<double>(counts[slot] - fake_counts[slot]);
      const auto sum = static_cast<double>(counts[slot] + fake_counts[slot]);
      if (sum > 0) statistic += difference * difference / sum;
    }
    EXPECT_GE(ChiSquareSurvival(statistic, 17), 1e-9);
  }
}

// --- Writes ------------------------------------------------------------------

TEST(PrioritizedSamplerTest, NewRowPolicies) {
  const auto weights_after = [](NewRowPriority policy) {
    Buffer buffer(3,
                  {.alpha = 1,
                   .beta = 1,
                   .epsilon = 0,
                   .new_rows = policy,
                   .new_row_priority = 5},
                  /*capacity=*/5);
    RILL_EXPECT_OK(buffer.UpdateAll({1, 2, 40}));
    RILL_EXPECT_OK(buffer.Update({2}, {10}));
    buffer.storage.Append(0, 1, 2, {20, std::nan("")});
    return buffer.Weights();
  };
  using Weights = std::map<Slot, float>;
  EXPECT_EQ(weights_after(NewRowPriority::kGiven),
            (Weights{{0, 1}, {1, .5f}, {2, .1f}, {3, .05f}, {4, .025f}}));
  EXPECT_EQ(weights_after(NewRowPriority::kMaxEver),
            (Weights{{0, 1}, {1, .5f}, {2, .1f}, {3, .025f}, {4, .025f}}));
  EXPECT_EQ(weights_after(NewRowPriority::kMaxInBuffer),
            (Weights{{0, 1}, {1, .5f}, {2, .1f}, {3, .1f}, {4, .1f}}));
  EXPECT_EQ(weights_after(NewRowPriority::kConstant),
            (Weights{{0, 1}, {1, .5f}, {2, .1f}, {3, .2f}, {4, .2f}}));
}

TEST(PrioritizedSamplerTest, LargestPriorityIsThatGivenAlsoWhereItIsBelowOne) {
  Buffer buffer(2, {.alpha = 1, .beta = 1, .epsilon = 0}, /*capacity=*/3);
  RILL_ASSERT_OK(buffer.UpdateAll({0.125f, 0.25f}));
  buffer.storage.Append(1);
  EXPECT_EQ(buffer.Weights(),
            (std::map<Slot, float>{{0, 1}, {1, 0.5}, {2, 0.5}}));
}

TEST(PrioritizedSamplerTest, ClearForgetsPriorities) {
  Buffer buffer(4, {.alpha = 1});
  RILL_ASSERT_OK(buffer.UpdateAll({8, 8, 8, 8}));
  buffer.storage.Clear();
  buffer.storage.Append(2);
  RILL_ASSERT_OK(buffer.Update({0}, {1}));
  for (const Draw& draw : buffer.Draws(64)) EXPECT_EQ(draw.weight, 1.0f);
}

TEST(PrioritizedSamplerTest, OddPrioritiesWithAWriteCountAsNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Buffer buffer(0, {.alpha = 1, .beta = 1, .epsilon = 0}, /*capacity=*/8);
  buffer.storage.Append(0, 1, 4, {-1, std::nan(""), kInfinity, -kInfinity});
  for (const Draw& draw : buffer.Draws(64)) EXPECT_EQ(draw.weight, 1.0f);
  // A priority that float32 does not hold becomes its largest number.
  buffer.storage.Append(0, 1, 1, {1e300});
  EXPECT_THAT(buffer.Weights(), ::testing::SizeIs(1));
  EXPECT_EQ(buffer.Draws(1)[0].slot, 4);
}

TEST(PrioritizedSamplerTest, RowsOfAWriteInFlight) {
  Buffer buffer(4, {.alpha = 1, .beta = 1, .epsilon = 0});
  RILL_ASSERT_OK(buffer.UpdateAll({1, 2, 4, 8}));
  buffer.storage.BeginAppend(0, 1, 2);  // Over rows 0 and 1.
  EXPECT_EQ(buffer.Weights(), (std::map<Slot, float>{{2, 1}, {3, 0.5}}));
  buffer.storage.Finish();
  EXPECT_EQ(buffer.Weights(),
            (std::map<Slot, float>{{0, 0.5}, {1, 0.5}, {2, 1}, {3, 0.5}}));
  buffer.storage.BeginOverwrite({2}, /*replaces=*/true);
  EXPECT_EQ(buffer.Weights()[2], 1.0f);
  buffer.storage.Finish();
  EXPECT_THAT(buffer.Counts(), DistributedAs(UniformProbabilities(4), 1e-9));
}

// The tree keeps the weights of rows that are being overwritten until somebody
// looks. One of these samplers is looked at then, the other is not.
TEST(PrioritizedSamplerTest, DrawsAreTheSameWhoeverLookedWhileRowsWereWritten) {
  constexpr int64_t kLanes = 4200;
  for (const NewRowPriority rule :
       {NewRowPriority::kMaxEver, NewRowPriority::kMaxInBuffer}) {
    StorageSimulator storage({.count = kLanes, .capacity = 3});
    PrioritizedSelector* selectors[2];
    std::unique_ptr<Sampler> samplers[2];
    for (int i = 0; i < 2; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(
          samplers[i],
          MakePrioritizedSampler({.new_rows = rule}, &selectors[i]));
      storage.AddObserver(samplers[i]->observer());
    }
    const Rng rng(kSeed);
    for (uint64_t step = 0; step < 25; ++step) {
      // All lanes, or some of them, which wrap around elsewhere then.
      const bool is_part = step % 6 == 5;
      storage.BeginAppend(is_part ? 900 : 0, is_part ? 2000 : kLanes,
                          step % 7 == 6 ? 2 : 1);
      if (step >= 6) {
        const SamplePlan between = PlanOf(*samplers[0], 16, kSeed, step);
        for (const Draw& draw : between.draws) {
          ASSERT_TRUE(storage.IsLive(draw.slot));
        }
        if (step % 4 == 0) {
          for (PrioritizedSelector* selector : selectors) {
            RILL_ASSERT_OK(selector->SetAlpha(0.1 * static_cast<double>(step)));
          }
          PlanOf(*samplers[0], 16, kSeed, step);
        }
      }
      storage.Finish();
      const SamplePlan plan = PlanOf(*samplers[0], 512, kSeed, step);
      ASSERT_EQ(PlanOf(*samplers[1], 512, kSeed, step).draws, plan.draws);
      ASSERT_EQ(selectors[0]->Priorities(), selectors[1]->Priorities());
      std::vector<float> priorities(plan.draws.size());
      for (size_t i = 0; i < priorities.size(); ++i) {
        priorities[i] = 3 * rng.UniformFloat(step, static_cast<uint32_t>(i));
      }
      for (const std::unique_ptr<Sampler>& sampler : samplers) {
        RILL_ASSERT_OK(sampler->UpdatePriorities(plan.draws, priorities));
      }
    }
  }
}

TEST(PrioritizedSamplerTest, PartOfARowInPlaceLeavesItsPriority) {
  Buffer buffer(3, {.alpha = 1, .beta = 1, .epsilon = 0});
  RILL_ASSERT_OK(buffer.UpdateAll({2, 4, 8}));
  buffer.storage.Overwrite({0, 2});
  EXPECT_EQ(buffer.Weights(),
            (std::map<Slot, float>{{0, 1}, {1, 0.5}, {2, 0.25}}));
  // Other rows are new ones, of the largest priority so far.
  buffer.storage.Overwrite({0}, /*replaces=*/true);
  EXPECT_EQ(buffer.Weights(),
            (std::map<Slot, float>{{0, 0.5}, {1, 1}, {2, 0.5}}));
}

// --- Exponents, strata -------------------------------------------------------

TEST(PrioritizedSamplerTest, ChangedExponentsAreThoseOfAFreshSampler) {
  PrioritizedOptions options = {.alpha = 0, .beta = 0.1};
  Buffer changed(300, options);
  Buffer fresh(300, {.alpha = 0.9, .beta = 0.7});
  const Rng rng(/*seed=*/4);
  std::vector<float> priorities;
  for (uint32_t i = 0; i < 300; ++i) {
    priorities.push_back(rng.UniformFloat(0, i));
  }
  RILL_ASSERT_OK(changed.UpdateAll(priorities));
  changed.Draws(8);
  RILL_ASSERT_OK(changed.selector->SetAlpha(0.9));
  RILL_ASSERT_OK(changed.selector->SetBeta(0.7));
  RILL_ASSERT_OK(fresh.UpdateAll(priorities));
  EXPECT_EQ(changed.Draws(256), fresh.Draws(256));
  EXPECT_EQ(changed.selector->alpha(), 0.9);
  EXPECT_EQ(changed.selector->beta(), 0.7);
  EXPECT_EQ(changed.sampler->SaveState().value(),
            fresh.sampler->SaveState().value());
}

TEST(PrioritizedSamplerTest, StateHasTheExponents) {
  Buffer buffer(20);
  RILL_ASSERT_OK(buffer.selector->SetAlpha(0.25));
  RILL_ASSERT_OK(buffer.selector->SetBeta(0.75));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state,
                            buffer.sampler->SaveState());
  Buffer loaded(20);
  RILL_ASSERT_OK(loaded.sampler->LoadState(state));
  EXPECT_EQ(loaded.selector->alpha(), 0.25);
  EXPECT_EQ(loaded.selector->beta(), 0.75);
}

TEST(PrioritizedSamplerTest, StrataSpreadABatchOverTheSum) {
  Buffer buffer(4, {.alpha = 1, .epsilon = 0, .stratified = true});
  RILL_ASSERT_OK(buffer.UpdateAll({1, 2, 4, 1}));
  for (uint64_t batch = 0; batch < 64; ++batch) {
    std::vector<int64_t> counts(4, 0);
    for (const Draw& draw : buffer.Draws(8, batch)) ++counts[draw.slot];
    EXPECT_THAT(counts, ::testing::ElementsAre(1, 2, 4, 1));
  }
  RILL_ASSERT_OK(buffer.UpdateAll({1, 2, 4, 2}));
  EXPECT_THAT(buffer.Counts(64), Each(Lt(64 * 64)));
}

// Extreme options neither overflow nor lose a row.
TEST(PrioritizedSamplerTest, ExtremePowersStayDrawable) {
  for (const double alpha : {1e-300, 40.0, 1e300}) {
    Buffer buffer(3, {.alpha = alpha, .beta = 1, .epsilon = 0});
    RILL_ASSERT_OK(
        buffer.UpdateAll({std::numeric_limits<float>::denorm_min(), 1, 3e38f}));
    for (const Draw& draw : buffer.Draws(64)) {
      EXPECT_GT(draw.weight, 0.0f);
      EXPECT_LE(draw.weight, 1.0f);
    }
  }
}

// --- Rows that moved ---------------------------------------------------------

TEST(PrioritizedSamplerTest, PrioritiesFollowRowsToOtherSlots) {
  // Steps 7 .. 16 of a lane of 10, then in lanes of other sizes.
  Buffer saved(0, {.alpha = 0.5}, /*capacity=*/10);
  saved.storage.Append(17);
  std::vector<float> priorities;  // By slot, told apart by the step.
  for (const Slot slot : saved.storage.Live()) {
    const Slot step = slot < 7 ? slot + 10 : slot;
    priorities.push_back(static_cast<float>(step * step));
  }
  RILL_ASSERT_OK(saved.UpdateAll(priorities));
  RILL_ASSERT_OK(saved.selector->SetAlpha(0.25));
  RILL_ASSERT_OK(saved.selector->SetBeta(1));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state,
                            saved.sampler->SaveState());
  for (const int64_t capacity : {1, 4, 9, 10, 11, 16, 100}) {
    Buffer moved(0, {}, capacity);
    moved.storage.Append(17);
    const MovedRows rows =
        MovedRows::Of(saved.storage.lanes(), moved.storage.lanes(),
                      std::vector<Cursor>{{.written = 17}});
    RILL_ASSERT_OK(moved.sampler->LoadState(state, {.moved = &rows}));
    EXPECT_EQ(moved.selector->alpha(), 0.25);
    // A sampler that was given the same.
    Buffer want(0, {.alpha = 0.25, .beta = 1}, capacity);
    want.storage.Append(17);
    RILL_ASSERT_OK(want.UpdateAll(
        std::vector<float>(want.storage.Live().size(), 16 * 16)));
    std::vector<Slot> slots;
    std::vector<float> values;
    for (int64_t step = 7; step < 17; ++step) {
      if (step < 17 - capacity) continue;
      slots.push_back(step % capacity);
      values.push_back(static_cast<float>(step * step));
    }
    RILL_ASSERT_OK(want.Update(slots, values));
    if (capacity > 10) {  // Rows that were gone are new: here they are there.
      for (int64_t step = std::max<int64_t>(0, 17 - capacity); step < 7;
           ++step) {
        RILL_ASSERT_OK(want.Update({step % capacity}, {1.0f}));
      }
    }
    ExpectEqualPlans(PlanOf(*moved.sampler, 64, kSeed, 1),
                     PlanOf(*want.sampler, 64, kSeed, 1));
    // The largest priority ever came along.
    moved.storage.Append(1);
    want.storage.Append(1);
    EXPECT_EQ(moved.Weights(), want.Weights()) << capacity;
  }
}

TEST(PrioritizedSamplerTest, SamplerThatCannotMoveItsStateSaysSo) {
  auto sampler = MakeFakePrioritizedSampler();
  const MovedRows rows;
  EXPECT_THAT(
      sampler->LoadState("", {.moved = &rows}),
      IsFailedPrecondition("FakePrioritizedSampler::LoadState: moved rows: "));
}

TEST(PrioritizedSamplerTest, SamplerThatCannotTakeOtherOptionsSaysSo) {
  auto sampler = MakeFakePrioritizedSampler();
  const std::vector<std::string> changed = {"alpha", "beta"};
  EXPECT_THAT(sampler->LoadState("", {.changed = changed}),
              IsFailedPrecondition("FakePrioritizedSampler::LoadState: other "
                                   "options: got alpha, beta, want none"));
}

}  // namespace
}  // namespace rill
