// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_
#define RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"

namespace rill {

// The facts about a sampler that the suite needs.
struct SamplerUnderTest {
  // A fresh one; all are equal.
  std::function<std::unique_ptr<Sampler>()> make;
  // Other seeds and batch numbers give other plans.
  bool is_random = true;
  // A plan also depends on the plans before it (epochs, consumption): the same
  // request gives another plan the second time.
  bool is_stateful = false;
  // A random sampler draws each live row sooner or later, whatever lane and
  // episode it is of.
  bool draws_all = true;
  PlanForm plans = {};
  // Its LoadState takes no moved rows: refuses, and says so.
  bool refuses_moved_rows = false;
};

// The behaviour that samplers/sampler.h promises, over a storage simulator.
// uniform_sampler_test.cc has samplers that it refuses.
class SamplerConformanceTest
    : public ::testing::TestWithParam<SamplerUnderTest> {
 protected:
  std::unique_ptr<Sampler> MakeSampler() const { return GetParam().make(); }
  const PlanForm& form() const { return GetParam().plans; }
  // A plan of so many items, that must succeed.
  SamplePlan PlanItems(Sampler& sampler, int64_t items, uint64_t seed,
                       uint64_t batch_number) const {
    return PlanOf(sampler, form().BatchSize(items), seed, batch_number);
  }
  void ExpectValid(const StorageSimulator& storage, Sampler& sampler,
                   uint64_t batches, uint64_t seed) const {
    ExpectValidPlans(storage, sampler, batches, seed, form());
  }
};

}  // namespace rill

// Runs the suite over a sampler:
//   INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = MakeUniformSampler});
#define INSTANTIATE_SAMPLER_CONFORMANCE(prefix, ...) \
  INSTANTIATE_TEST_SUITE_P(                          \
      prefix, SamplerConformanceTest,                \
      ::testing::Values(::rill::SamplerUnderTest(__VA_ARGS__)))

#endif  // RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_
