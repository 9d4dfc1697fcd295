// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_RANDOM_LOG_PROB_H_
#define RILL_SPECS_RANDOM_LOG_PROB_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The log-probabilities that LeafSpec::Random gives its draws: how likely they
// are, or for floating point how dense. An element between two bounds has minus
// the logarithm of their distance, an element of n whole numbers or options
// -log(n), one without a bound a standard normal's. An element with equal
// bounds counts as certain.
//
// Adds to each of `sums`, [lanes, parts], those of an equal part of a lane's
// elements, in order; of choices (LeafSpec), an equal part of its choices.
// `values`, [lanes] + spec.shape, are the draws; contiguous, in host memory.
// They are read only where the density depends on them.
//
// INVALID_ARGUMENT where `parts` does not divide the elements, and of a mask
// that differs from lane to lane: LegalChoices has those of masks that are
// data.
// Thread-safety: thread-safe.
// Cost: O(elements); allocates nothing.
absl::Status AddRandomLogProbs(absl::string_view caller, const LeafSpec& spec,
                               const Tensor& values, int64_t parts,
                               absl::Span<double> sums);

// The number of elements of a lane that parts are made of.
int64_t RandomDrawsPerLane(const LeafSpec& spec);

}  // namespace rill

#endif  // RILL_SPECS_RANDOM_LOG_PROB_H_
