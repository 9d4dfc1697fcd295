// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_SAMPLER_H_
#define RILL_SAMPLERS_PRIORITIZED_SAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"

namespace rill {

// Rows in proportion to their priorities, with importance weights: TorchRL's
// PrioritizedSampler. For the meaning of each option and for what is exact, see
// prioritized_selector.h. Where `selector` is given it is set to the sampler's
// own, whose alpha and beta may be changed as long as the sampler lives.
//
// INVALID_ARGUMENT where an option is out of its range. Plan gives
// FAILED_PRECONDITION also where no row has a priority above 0.
//
// Thread-safety: thread-safe.
// Cost: prioritized_selector.h, and O(batch + rows written) for generations;
//   free of allocation once warm.
//
// Example (PrioritizedSamplerTest.Example runs it):
//   PrioritizedSelector* exponents;
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Sampler> sampler,
//       MakePrioritizedSampler({.alpha = 0.7, .beta = 0.5}, &exponents));
//   RILL_RETURN_IF_ERROR(storage->AddObserver(sampler->observer()));
//   SamplePlan plan;
//   RILL_RETURN_IF_ERROR(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
//   // ... train on the rows, each loss times plan.draws[i].weight ...
//   RILL_RETURN_IF_ERROR(sampler->UpdatePriorities(plan.draws, td_errors));
//   RILL_RETURN_IF_ERROR(exponents->SetBeta(0.6));
absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSampler(
    const PrioritizedOptions& options = {},
    PrioritizedSelector** selector = nullptr);

// The same over items of another unit: the anchors are drawn in proportion to
// their priorities, and UpdatePriorities gives them new ones.
absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSamplerOver(
    SampleUnit unit, const PrioritizedOptions& options = {},
    PrioritizedSelector** selector = nullptr);

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITIZED_SAMPLER_H_
