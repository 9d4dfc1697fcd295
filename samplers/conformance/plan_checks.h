// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_
#define RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rill/base/rng.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"

namespace rill {

// Checks of plans, for tests of samplers. Failures are GoogleTest's.
// Thread-safety: thread-compatible.

// Adds the sampler's observer, and hands the sampler back.
std::unique_ptr<Sampler> AttachTo(StorageModel& storage,
                                  std::unique_ptr<Sampler> sampler);

// A plan that must succeed.
SamplePlan PlanOf(Sampler& sampler, int64_t batch_size, uint64_t seed,
                  uint64_t batch_number);

// The slots of its draws.
std::vector<Slot> DrawnSlots(Sampler& sampler, int64_t batch_size,
                             uint64_t seed, uint64_t batch_number = 0);

// How often each of `num_slots` slots is drawn in so many batches.
std::vector<int64_t> CountDraws(Sampler& sampler, int64_t num_slots,
                                int64_t batch_size, uint64_t seed,
                                uint64_t batches);

// The rank of an order of different numbers among all orders of them.
int64_t RankOf(const std::vector<int64_t>& order);

// A plan that no sampler makes, to see that it is left alone.
SamplePlan SentinelPlan();

void ExpectEqualPlans(const SamplePlan& a, const SamplePlan& b);

// The form of a sampler's plans.
struct PlanForm {
  // Rows of an item where an item is not one row; batch sizes are multiples of
  // it. With 0 items have any number of rows, and a batch has one pick an item.
  int64_t rows_per_item = 1;
  // There may be no item among the live rows: a plan may then fail.
  bool may_find_nothing = false;

  // The batch size that asks for `items`.
  int64_t BatchSize(int64_t items) const {
    return rows_per_item > 1 ? items * rows_per_item : items;
  }
};

// Makes `batches` plans, and checks each. It has the right number of draws, all
// of live rows in their generation. Weights are in (0, 1], and 1 where the
// sampler is not weighted. Rows and segments belong together, those of the
// context too.
void ExpectValidPlans(const StorageSimulator& storage, Sampler& sampler,
                      uint64_t batches, uint64_t seed,
                      const PlanForm& form = {});

// The checks of one plan for `items`.
void ExpectValidPlan(const StorageSimulator& storage, const Sampler& sampler,
                     const SamplePlan& plan, int64_t items,
                     const PlanForm& form = {});

// Finite priorities > 0, other ones for each draw and `salt`.
std::vector<float> PrioritiesFor(const SamplePlan& plan, uint64_t salt);

// One append, write in place or (seldom) clear, a function of the numbers.
void ApplyRandomWrite(const Rng& rng, uint64_t history, uint32_t operation,
                      StorageSimulator* storage);

}  // namespace rill

#endif  // RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_
