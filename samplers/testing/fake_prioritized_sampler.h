// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TESTING_FAKE_PRIORITIZED_SAMPLER_H_
#define RILL_SAMPLERS_TESTING_FAKE_PRIORITIZED_SAMPLER_H_

#include <memory>

#include "rill/samplers/sampler.h"

namespace rill {

// The plainest prioritized sampler there is, for tests of its users and as an
// oracle for better ones. Draws row i with P(i) = p_i^alpha / sum_k p_k^alpha.
// Weighs it by (n P(i))^-beta / max_k w_k over the n live rows with p_k > 0. A
// row that is written, appended or in place, has the priority that came with
// it. Without one it has the highest that was ever given (1 at first).
//
// FAILED_PRECONDITION of Plan also where all priorities are 0.
//
// Thread-safety: thread-safe.
// Cost: O(batch x rows); it is a fake.
struct FakePrioritizedSamplerOptions {
  double alpha = 0.6;  // >= 0.
  double beta = 0.4;   // In [0, 1].
};
std::unique_ptr<Sampler> MakeFakePrioritizedSampler(
    const FakePrioritizedSamplerOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_TESTING_FAKE_PRIORITIZED_SAMPLER_H_
