// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_RECENT_SELECTOR_H_
#define RILL_SAMPLERS_SELECTORS_RECENT_SELECTOR_H_

#include <memory>

#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"

namespace rill {

// Prefers newer rows, with replacement: of two picks by the unit's own rule the
// younger one, age counted in steps of its lane; of equally old ones the first.
//
// Bias: of N rows of one lane, oldest first, the r-th (from 0) has the
// probability (2 r + 1) / N^2. That is twice that of a uniform sampler for the
// newest row, 1 / N of it for the oldest, and 2/3 of the mean age. There are no
// weights that would take it back. Rows of a lane that lags behind others are
// not older for that.
//
// No state of its own.
//
// Thread-safety: thread-compatible.
// Cost: two picks of the unit's a draw; an event O(ranges); 8 bytes a lane.
std::unique_ptr<Selector> MakeRecentSelector();

// Samples transitions. Name: "RecentSampler". Thread-safe.
//
// Example (RecentSelectorTest.Example runs it):
//   std::unique_ptr<Sampler> sampler = MakeRecentSampler();
std::unique_ptr<Sampler> MakeRecentSampler();

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_RECENT_SELECTOR_H_
