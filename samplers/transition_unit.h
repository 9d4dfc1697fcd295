// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRANSITION_UNIT_H_
#define RILL_SAMPLERS_TRANSITION_UNIT_H_

#include <memory>

#include "rill/samplers/unit.h"

namespace rill {

// One row an item: every live row is an anchor, Pick takes each with the same
// probability, and a plan has draws and nothing else. Numbers anchors lane
// after lane, oldest first (LiveSlots). No state of its own.
//
// Thread-safety: thread-compatible.
// Cost: an event O(ranges + lanes), in place O(rows); a pick O(log lanes).
std::unique_ptr<Unit> MakeTransitionUnit();

}  // namespace rill

#endif  // RILL_SAMPLERS_TRANSITION_UNIT_H_
