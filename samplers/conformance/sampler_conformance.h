// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_
#define RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "rill/samplers/sampler.h"

namespace rill {

// What the suite must know of a sampler.
struct SamplerUnderTest {
  // A fresh one; all are equal.
  std::function<std::unique_ptr<Sampler>()> make;
  // Other seeds and batch numbers give other plans.
  bool is_random = true;
};

// The behaviour that samplers/sampler.h promises, over a storage simulator.
class SamplerConformanceTest
    : public ::testing::TestWithParam<SamplerUnderTest> {
 protected:
  std::unique_ptr<Sampler> MakeSampler() const { return GetParam().make(); }
};

}  // namespace rill

// Runs the suite over a sampler:
//   INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = MakeUniformSampler});
#define INSTANTIATE_SAMPLER_CONFORMANCE(prefix, ...) \
  INSTANTIATE_TEST_SUITE_P(                          \
      prefix, SamplerConformanceTest,                \
      ::testing::Values(::rill::SamplerUnderTest(__VA_ARGS__)))

#endif  // RILL_SAMPLERS_CONFORMANCE_SAMPLER_CONFORMANCE_H_
