// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNIFORM_SAMPLER_H_
#define RILL_SAMPLERS_UNIFORM_SAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"

namespace rill {

// Every live row with the same probability, with replacement: TorchRL's
// RandomSampler.
//
// Thread-safety: thread-safe.
// Cost: a plan O(batch x log lanes), an event O(rows written) for the
//   generations; free of allocation once the plan's memory is warm.
//
// Example (UniformSamplerTest.Example runs it):
//   std::unique_ptr<Sampler> sampler = MakeUniformSampler();
//   RILL_RETURN_IF_ERROR(storage->AddObserver(sampler->observer()));
//   SamplePlan plan;
//   RILL_RETURN_IF_ERROR(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
std::unique_ptr<Sampler> MakeUniformSampler();

// The same over items of another unit, each anchor with the same probability
// unless the unit has a rule. INVALID_ARGUMENT where `unit` is null.
absl::StatusOr<std::unique_ptr<Sampler>> MakeUniformSamplerOver(
    SampleUnit unit);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNIFORM_SAMPLER_H_
