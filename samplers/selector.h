// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTOR_H_
#define RILL_SAMPLERS_SELECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/state_bytes.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// Which anchors make a batch: the first half of a sampler (unit.h is the
// other, composed_sampler.h puts them together). It sees the storage's writes
// for what they tell of rows (priorities, policy versions) and hears from the
// unit which rows are anchors.
//
// What it selects is a pure function of the request and of the history of
// events and updates.
//
// Order of calls: a write is OnRetire of the unit (anchors removed), OnRetire
// of the selector; then OnWrite of the selector, OnWrite of the unit (anchors
// added). Attaching again forgets everything.
//
// Thread-safety: thread-compatible; the sampler's mutex guards it.
class Selector : public WriteObserver, public AnchorListener {
 public:
  struct Request {
    int64_t count = 0;  // >= 1.
    uint64_t seed = 0;
    uint64_t batch_number = 0;
  };

  // Appends up to `count` draws with slot and weight to `draws`, which is
  // empty; the sampler fills in generations. Fewer than `count` only where the
  // selector's own rule says so (the last batch of an epoch).
  // FAILED_PRECONDITION, nothing changed, where there is nothing to select.
  virtual absl::Status Select(const Request& request, const Anchors& anchors,
                              std::vector<Draw>* draws) = 0;

  // As Sampler::UpdatePriorities; arguments were checked, `rows` tells stale
  // draws.
  virtual void UpdatePriorities(absl::Span<const Draw> /*draws*/,
                                absl::Span<const float> /*priorities*/,
                                const samplers_internal::LiveRows& /*rows*/) {}

  virtual bool is_weighted() const { return false; }

  // A part of the sampler's state. LoadState follows the attaching to equal
  // rows; with an error nothing has changed.
  virtual void SaveState(samplers_internal::StateWriter* writer) const = 0;
  virtual absl::Status LoadState(samplers_internal::StateReader* reader) = 0;

  // "Uniform".
  virtual absl::string_view name() const = 0;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTOR_H_
