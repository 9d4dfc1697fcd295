// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_ORDERED_SELECTOR_H_
#define RILL_SAMPLERS_SELECTORS_ORDERED_SELECTOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/selector.h"

namespace rill {

// Selectors that take the anchors in an order, not by chance. Draw i is the
// i-th in order, each once; a larger batch begins again with the first. As
// removers they name what has to go. A queue, which gives each row once and in
// order, is a consuming selector over a FIFO one (consuming_selector.h).
//
// Thread-safety: thread-compatible.
// Cost: O(log anchors) a row written, a priority or a removal, a batch
//   O(batch x log batch); 32 bytes a row.

// By age: the oldest first (FIFO) or the newest (LIFO). A row is as old as its
// append, or as the write in place that replaced it. Steps of one append follow
// one another, and the rows of several lanes are equally old. Writing a part of
// a row in place changes no age. Equally old: the lower slot first.
std::unique_ptr<Selector> MakeFifoSelector();
std::unique_ptr<Selector> MakeLifoSelector();

// By priority: the lowest first (min) or the highest (max). Equal ones: the
// lower slot first.
struct HeapSelectorOptions {
  // The priority of a row that is written or replaced without one of its own,
  // or with one that is not finite. Finite. A write in place of a part of the
  // keys that does not name the priority leaves it.
  double new_priority = 1.0;
};
absl::StatusOr<std::unique_ptr<Selector>> MakeMinHeapSelector(
    const HeapSelectorOptions& options = {});
absl::StatusOr<std::unique_ptr<Selector>> MakeMaxHeapSelector(
    const HeapSelectorOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_ORDERED_SELECTOR_H_
