// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_WITHOUT_REPLACEMENT_H_
#define RILL_SAMPLERS_SELECTORS_WITHOUT_REPLACEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/slots/slot.h"

namespace rill {

// Every anchor once an epoch: the peer's SamplerWithoutReplacement. The last
// batch of an epoch has what is left, and the next batch begins another epoch.
//
// An epoch is a random order of the slots that have held a row; where no more
// than half of them are anchors when it begins, of those that are. It starts
// anew when the storage grows, but where it is a list: that goes on, and what
// comes meanwhile waits for the next one. Rows that are written over do not
// change it: the slot has its turn with the row that is there then, or none
// where no item begins there. A write in flight hides its rows: their turn
// passes. What becomes an anchor during an epoch may have to wait for the next
// one.
//
// Two of them that are parts of one mixture go in different orders.
//
// A plan depends on the seed and on the plans before it (epoch and place are
// saved state), not on the batch number.
//
// Thread-safety: thread-compatible.
// Cost: a plan O(batch) of 0.1 us each whatever the size, where more than half
//   of the slots are anchors (others are passed over); there is no list of
//   slots. Where fewer are, the plan that begins an epoch lists them, at 8
//   bytes each: O(anchors log anchors) an epoch, however many slots there are
//   and whatever is written meanwhile; an epoch gives about as many draws.
struct WithoutReplacementOptions {
  // What is left of an epoch that another one has begun.
  struct Rest {
    int64_t num_slots = 0;  // That had held a row when it began.
    // In order. Slots that have not held a row, or come twice, are left out.
    std::vector<Slot> slots = {};
  };

  bool shuffle = true;     // False: in the order of the slots.
  bool drop_last = false;  // True: what is left is passed over where it is
                           // less than a batch. FAILED_PRECONDITION of Plan
                           // where all anchors are.
  // The first epoch goes through these, unless the storage has grown beyond
  // `num_slots` or was cleared before the first plan.
  std::optional<Rest> first_epoch = std::nullopt;
};
std::unique_ptr<Selector> MakeWithoutReplacementSelector(
    const WithoutReplacementOptions& options = {});

// Of transitions. Name: "SamplerWithoutReplacement". Thread-safe.
//
// Example (WithoutReplacementTest.Example runs it):
//   std::unique_ptr<Sampler> sampler =
//       MakeSamplerWithoutReplacement({.drop_last = true});
std::unique_ptr<Sampler> MakeSamplerWithoutReplacement(
    const WithoutReplacementOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_WITHOUT_REPLACEMENT_H_
