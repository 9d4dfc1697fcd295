// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_CONSUMING_SELECTOR_H_
#define RILL_SAMPLERS_SELECTORS_CONSUMING_SELECTOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"

namespace rill {

// Takes every anchor a number of times at most. Then it is not drawn again
// until its row is written anew: TorchRL's ConsumingSampler. The selector
// `inner` chooses among the anchors that are left. By default it is uniform:
// each has the same probability, also where the unit has a rule of its own. A
// FIFO selector makes a queue.
//
// A batch has fewer draws where no more are left, and Plan is
// FAILED_PRECONDITION where none is. The rows stay in the storage, which
// overwrites them in its own order, and its size does not shrink. Where items
// are single rows AddUsedUp names those that are used up, so that a writer may
// put new rows in their places first (replay/writers/removing_writer.h).
//
// A plan depends on the plans before it: counts are saved state.
//
// Thread-safety: thread-compatible.
// Cost: that of `inner`, one draw at a time, and O(1) a draw and row written;
//   40 bytes a row.
struct ConsumingOptions {
  int64_t max_times_sampled = 1;              // >= 1.
  std::unique_ptr<Selector> inner = nullptr;  // Null: uniform.
};
// INVALID_ARGUMENT where an option is out of range, or `inner` is a mixture,
// whose shares are those of a batch and not of single draws: mix consuming
// selectors instead.
absl::StatusOr<std::unique_ptr<Selector>> MakeConsumingSelector(
    ConsumingOptions options = {});

// Samples transitions. Name: "ConsumingSampler". Thread-safe.
//
// Example (ConsumingSelectorTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler,
//                         MakeConsumingSampler({.max_times_sampled = 2}));
absl::StatusOr<std::unique_ptr<Sampler>> MakeConsumingSampler(
    ConsumingOptions options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_CONSUMING_SELECTOR_H_
