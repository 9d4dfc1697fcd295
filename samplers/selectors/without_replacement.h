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

// Every anchor once an epoch: TorchRL's SamplerWithoutReplacement. The last
// batch of an epoch has what is left, and the next batch begins another epoch.
//
// An epoch is a random order of the slots that have held a row. Where no more
// than half of them are anchors when it begins, it is a list of those that are.
// It starts anew when the storage grows, unless it is a list. A list goes on,
// and anchors that come meanwhile wait for the next epoch. Rows that are
// written over do not change it: the slot comes up with the row that is there
// then, or with none where no item begins there. A write in flight hides its
// rows, which are then passed over. A row that becomes an anchor during an
// epoch may have to wait for the next one.
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
//   bytes each. That is O(anchors log anchors) an epoch, however many slots
//   there are and whatever is written meanwhile. An epoch gives about as many
//   draws.
struct WithoutReplacementOptions {
  // The rest of an epoch that another sampler has begun.
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

// Samples transitions. Name: "SamplerWithoutReplacement". Thread-safe.
//
// Example (WithoutReplacementTest.Example runs it):
//   std::unique_ptr<Sampler> sampler =
//       MakeSamplerWithoutReplacement({.drop_last = true});
std::unique_ptr<Sampler> MakeSamplerWithoutReplacement(
    const WithoutReplacementOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_WITHOUT_REPLACEMENT_H_
