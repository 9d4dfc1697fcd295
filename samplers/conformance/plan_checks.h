// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_
#define RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_

#include <cstdint>
#include <vector>

#include "rill/base/rng.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"

namespace rill {

// What tests of samplers say about plans. Failures are GoogleTest's.
// Thread-safety: thread-compatible.

// A plan that must succeed.
SamplePlan PlanOf(Sampler& sampler, int64_t batch_size, uint64_t seed,
                  uint64_t batch_number);

// A plan that no sampler makes, to see that it is left alone.
SamplePlan SentinelPlan();

void ExpectEqualPlans(const SamplePlan& a, const SamplePlan& b);

// What a sampler's plans look like.
struct PlanForm {
  // Rows of an item where an item is not one row: batch sizes are multiples of
  // it. 0: items of any number of rows, one pick an item of the batch.
  int64_t rows_per_item = 1;
  // There may be fewer picks than were asked for, but at least one.
  bool may_be_short = false;
  // There may be no item among the live rows: a plan may then fail.
  bool may_find_nothing = false;

  // The batch size that asks for `items`.
  int64_t BatchSize(int64_t items) const {
    return rows_per_item > 1 ? items * rows_per_item : items;
  }
};

// Makes `batches` plans, and finds in each the right number of draws, all of
// live rows in their generation, with weights in (0, 1] (1 where the sampler is
// not weighted), and rows and segments that belong together, those of the
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
