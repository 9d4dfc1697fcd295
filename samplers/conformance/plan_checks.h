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

// Makes `batches` plans, and finds in each the right number of draws, all of
// live rows in their generation, with weights in (0, 1] (1 where the sampler is
// not weighted), and rows and segments that belong together.
void ExpectValidPlans(const StorageSimulator& storage, Sampler& sampler,
                      uint64_t batches, uint64_t seed);

// Finite priorities > 0, other ones for each draw and `salt`.
std::vector<float> PrioritiesFor(const SamplePlan& plan, uint64_t salt);

// One append, write in place or (seldom) clear, a function of the numbers.
void ApplyRandomWrite(const Rng& rng, uint64_t history, uint32_t operation,
                      StorageSimulator* storage);

}  // namespace rill

#endif  // RILL_SAMPLERS_CONFORMANCE_PLAN_CHECKS_H_
