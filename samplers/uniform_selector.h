// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNIFORM_SELECTOR_H_
#define RILL_SAMPLERS_UNIFORM_SELECTOR_H_

#include <memory>

#include "rill/samplers/selector.h"

namespace rill {

// With replacement, each draw by the unit's own rule (Anchors::Pick): each row
// with the same probability where an item is a row. Draw i is a function of
// (seed, batch number, i) and of the anchors. No state of its own.
//
// Thread-safety: thread-compatible.
// Cost: a pick of the unit's a draw; events cost nothing; no allocation.
std::unique_ptr<Selector> MakeUniformSelector();

}  // namespace rill

#endif  // RILL_SAMPLERS_UNIFORM_SELECTOR_H_
