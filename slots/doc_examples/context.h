// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_SLOTS_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>

#include "rill/base/rng.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const Rng rng;
extern const uint64_t batch;
extern const uint32_t draw;

}  // namespace rill::doc_examples

#endif  // RILL_SLOTS_DOC_EXAMPLES_CONTEXT_H_
