// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/conformance/plan_checks.h"

#include <algorithm>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

void ExpectValidRows(const StorageSimulator& storage, const SamplePlan& plan) {
  ASSERT_EQ(plan.segments.size(), plan.rows.size());
  ASSERT_EQ(plan.generations.size(), plan.rows.size());
  EXPECT_TRUE(std::is_sorted(plan.segments.begin(), plan.segments.end()));
  if (!plan.mask.empty()) {
    EXPECT_EQ(plan.mask.size(), plan.rows.size());
  }
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    EXPECT_TRUE(storage.IsLive(plan.rows[i])) << "row " << i;
    EXPECT_EQ(plan.generations[i], storage.Generation(plan.rows[i]));
    EXPECT_GE(plan.segments[i], 0);
    EXPECT_LT(plan.segments[i], static_cast<int64_t>(plan.draws.size()));
  }
}

void ExpectValidContext(const StorageSimulator& storage, const SamplePlan& plan,
                        const SamplePlan::Context& list) {
  ASSERT_EQ(list.segments.size(), list.rows.size());
  EXPECT_TRUE(std::is_sorted(list.segments.begin(), list.segments.end()));
  if (!list.mask.empty()) {
    EXPECT_EQ(list.mask.size(), list.rows.size());
    EXPECT_THAT(list.mask, testing::Contains(0));
  }
  for (size_t i = 0; i < list.rows.size(); ++i) {
    EXPECT_TRUE(storage.IsLive(list.rows[i])) << "row " << i;
    EXPECT_GE(list.segments[i], 0);
    EXPECT_LT(list.segments[i], static_cast<int64_t>(plan.draws.size()));
  }
}

}  // namespace

std::unique_ptr<Sampler> AttachTo(StorageModel& storage,
                                  std::unique_ptr<Sampler> sampler) {
  storage.AddObserver(sampler->observer());
  return sampler;
}

SamplePlan PlanOf(Sampler& sampler, int64_t batch_size, uint64_t seed,
                  uint64_t batch_number) {
  SamplePlan plan;
  RILL_EXPECT_OK(sampler.Plan(
      {.batch_size = batch_size, .seed = seed, .batch_number = batch_number},
      &plan));
  return plan;
}

std::vector<Slot> DrawnSlots(Sampler& sampler, int64_t batch_size,
                             uint64_t seed, uint64_t batch_number) {
  std::vector<Slot> slots;
  for (const Draw& draw :
       PlanOf(sampler, batch_size, seed, batch_number).draws) {
    slots.push_back(draw.slot);
  }
  return slots;
}

std::vector<int64_t> CountDraws(Sampler& sampler, int64_t num_slots,
                                int64_t batch_size, uint64_t seed,
                                uint64_t batches) {
  std::vector<int64_t> counts(num_slots, 0);
  for (uint64_t batch = 0; batch < batches; ++batch) {
    for (const Slot slot : DrawnSlots(sampler, batch_size, seed, batch)) {
      ++counts.at(slot);
    }
  }
  return counts;
}

int64_t RankOf(const std::vector<int64_t>& order) {
  const auto size = static_cast<int64_t>(order.size());
  int64_t rank = 0;
  for (int64_t i = 0; i < size; ++i) {
    int64_t smaller = 0;
    for (int64_t j = i + 1; j < size; ++j) smaller += order[j] < order[i];
    rank = rank * (size - i) + smaller;
  }
  return rank;
}

SamplePlan SentinelPlan() {
  SamplePlan plan;
  plan.draws = {{.slot = -7, .generation = -8, .weight = -9.0f}};
  plan.rows = {-1, -2};
  plan.segments = {5};
  plan.generations = {-4, -5, -6};
  plan.mask = {3, 3, 3, 3};
  plan.context = {{.rows = {-1}, .segments = {4, 4}, .mask = {2, 2, 2}}};
  plan.epoch = 5;
  return plan;
}

void ExpectEqualPlans(const SamplePlan& a, const SamplePlan& b) {
  EXPECT_EQ(a.draws, b.draws);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.segments, b.segments);
  EXPECT_EQ(a.generations, b.generations);
  EXPECT_EQ(a.mask, b.mask);
  EXPECT_EQ(a.epoch, b.epoch);
  ASSERT_EQ(a.context.size(), b.context.size());
  for (size_t i = 0; i < a.context.size(); ++i) {
    EXPECT_EQ(a.context[i].rows, b.context[i].rows);
    EXPECT_EQ(a.context[i].segments, b.context[i].segments);
    EXPECT_EQ(a.context[i].mask, b.context[i].mask);
  }
}

void ExpectValidPlan(const StorageSimulator& storage, const Sampler& sampler,
                     const SamplePlan& plan, int64_t items,
                     const PlanForm& form) {
  const auto picks = static_cast<int64_t>(plan.draws.size());
  EXPECT_LE(picks, items);
  EXPECT_GE(picks, sampler.traits().may_be_short ? 1 : items);
  for (const Draw& draw : plan.draws) {
    ASSERT_TRUE(storage.IsLive(draw.slot)) << "slot " << draw.slot;
    EXPECT_EQ(draw.generation, storage.Generation(draw.slot))
        << "slot " << draw.slot;
    EXPECT_GT(draw.weight, 0.0f);
    EXPECT_LE(draw.weight, 1.0f);
    if (!sampler.traits().is_weighted) {
      EXPECT_EQ(draw.weight, 1.0f);
    }
  }
  if (form.rows_per_item > 1) {
    EXPECT_EQ(static_cast<int64_t>(plan.rows.size()),
              picks * form.rows_per_item);
  }
  ExpectValidRows(storage, plan);
  for (const SamplePlan::Context& list : plan.context) {
    ExpectValidContext(storage, plan, list);
  }
}

void ExpectValidPlans(const StorageSimulator& storage, Sampler& sampler,
                      uint64_t batches, uint64_t seed, const PlanForm& form) {
  constexpr int64_t kItems = 16;
  SamplePlan plan;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    const absl::Status status =
        sampler.Plan({.batch_size = form.BatchSize(kItems),
                      .seed = seed,
                      .batch_number = batch},
                     &plan);
    if (form.may_find_nothing && absl::IsFailedPrecondition(status)) continue;
    RILL_ASSERT_OK(status);
    ExpectValidPlan(storage, sampler, plan, kItems, form);
  }
}

std::vector<float> PrioritiesFor(const SamplePlan& plan, uint64_t salt) {
  std::vector<float> priorities;
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    const Rng rng(static_cast<uint64_t>(plan.draws[i].slot));
    priorities.push_back(0.25f +
                         rng.UniformFloat(salt, static_cast<uint32_t>(i)));
  }
  return priorities;
}

void ApplyRandomWrite(const Rng& rng, uint64_t history, uint32_t operation,
                      StorageSimulator* storage) {
  const Lanes& lanes = storage->lanes();
  // A few draws an operation, none used twice.
  uint32_t next_draw = 16 * operation;
  auto pick = [&](int64_t bound) {
    return rng.UniformInt(history, ++next_draw, bound);
  };
  const int64_t kind = pick(20);
  const std::vector<Slot> live = storage->Live();
  if (kind == 0) {
    storage->Clear();
  } else if (kind < 5 && !live.empty()) {
    const int64_t first = pick(static_cast<int64_t>(live.size()));
    const int64_t end = std::min<int64_t>(first + 3, live.size());
    storage->Overwrite(absl::MakeConstSpan(live).subspan(first, end - first));
  } else {
    const int64_t lane = pick(lanes.count);
    storage->Append(lane, pick(lanes.count - lane) + 1,
                    pick(lanes.capacity + 2) + 1);
  }
}

}  // namespace rill
