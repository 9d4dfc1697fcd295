// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_TEST_SPECS_H_
#define RILL_SPECS_TEST_SPECS_H_

#include <cstdint>

#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"

// Specs for property tests.
namespace rill {

// The `i`-th of a sequence that goes through all domains and dtypes, with
// masks, bounds by element and leads of rank up to 2; few elements and options.
LeafSpec RandomLeafSpec(const Rng& rng, uint64_t i);
// Up to 5 of them under nested keys, and non-tensors.
TensorDictSpec RandomSpec(const Rng& rng, uint64_t i);

}  // namespace rill

#endif  // RILL_SPECS_TEST_SPECS_H_
