// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTOR_H_
#define RILL_SAMPLERS_SELECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/samplers/anchors.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/state_bytes.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// Chooses the anchors of a batch. It is the first half of a sampler (unit.h is
// the other, composed_sampler.h puts them together). It sees the storage's
// writes for what they report of rows (priorities, policy versions). The unit
// notifies it which rows are anchors.
//
// The selection is a pure function of the request and of the history of events
// and updates.
//
// Order of calls: a write is OnRetire of the selector, OnRetire of the unit
// (anchors removed); then OnWrite of the selector, OnWrite of the unit (anchors
// added). Where rows were written in place, anchors are removed and added at
// the end, so that they can be selected while that write is in flight.
// Attaching is OnAttach of the selector, then of the unit (anchors cleared),
// and forgets everything; clearing is OnClear of the unit (anchors cleared),
// then of the selector. Several writes may be in flight: retire A, retire B,
// write A, write B.
//
// The same interface says what to remove. With a FIFO, LIFO or heap selector
// (ordered_selector.h) Select names the first `count` anchors in that order,
// each once where there are as many.
//
// Errors of Prepare read "<what>: got <value>, want <range>"; the sampler puts
// its name before them.
//
// Thread-safety: thread-compatible; the sampler's mutex guards it.
class Selector : public WriteObserver, public AnchorListener {
 public:
  struct Request {
    int64_t count = 0;  // >= 1.
    uint64_t seed = 0;
    uint64_t batch_number = 0;
    // Draw i uses random number first_draw + i of the batch: two selectors
    // that share a batch share none.
    int64_t first_draw = 0;
    // Names a part of a mixture: what does not go by draw numbers (the order of
    // an epoch) is another one for another part. 0 outside of mixtures.
    uint64_t part = 0;
  };

  // Comes right before each Select, with its arguments: finds out whether that
  // can select, and what it needs (weights, versions) once. Only this fails, so
  // that of two selectors that share a batch none moves on where the other
  // fails. There is at least one anchor. FAILED_PRECONDITION where there is
  // nothing to select.
  virtual absl::Status Prepare(const Request& /*request*/,
                               const Anchors& /*anchors*/) {
    return absl::OkStatus();
  }

  // Appends up to `count` draws with slot and weight to `draws`; the sampler
  // fills in generations. Fewer than `count` only where the selector's own rule
  // says so (the last batch of an epoch).
  virtual void Select(const Request& request, const Anchors& anchors,
                      std::vector<Draw>* draws) = 0;

  // As Sampler::UpdatePriorities; arguments were checked, `rows` tells stale
  // draws.
  virtual void UpdatePriorities(absl::Span<const Draw> /*draws*/,
                                absl::Span<const float> /*priorities*/,
                                const samplers_internal::LiveRows& /*rows*/) {}

  virtual bool is_weighted() const { return false; }

  // Sampler::LastEpoch and RestOfEpoch, of anchors: `request` as the next
  // Select's. Only where has_epochs().
  virtual bool has_epochs() const { return false; }
  virtual uint64_t last_epoch() const { return 0; }
  virtual Sampler::EpochRest RestOfEpoch(const Request& /*request*/,
                                         const Anchors& /*anchors*/) const {
    return {};
  }

  // True: it leaves the choice to the unit's own rule (Anchors::Pick).
  virtual bool picks_by_unit() const { return false; }

  // As Sampler::AddUsedUp, of anchors.
  virtual int64_t AddUsedUp(int64_t /*most*/,
                            std::vector<Slot>* /*slots*/) const {
    return 0;
  }
  // Whether the slot is among those; O(1). An anchor becomes one by Select, or
  // when it is added, and ceases to be one when it is removed.
  virtual bool IsUsedUp(Slot /*slot*/) const { return false; }
  // False: there are never any.
  virtual bool uses_up() const { return false; }

  // True: it goes by the order in which rows were appended, so that a row in
  // another's place misleads it.
  virtual bool needs_order() const { return false; }

  // False: it does without hearing which rows are anchors, so that the unit
  // need not find out.
  virtual bool hears_anchors() const { return true; }

  // A part of the sampler's state. LoadState follows the attaching to equal
  // rows and the unit's LoadState; with an error nothing has changed that
  // loading what was saved before does not put right.
  virtual void SaveState(samplers_internal::StateWriter* writer) const = 0;
  virtual absl::Status LoadState(samplers_internal::StateReader* reader) = 0;
  // The same after attaching to rows that have moved (Sampler::LoadMovedState),
  // which `rows` tells live or not; an error changes nothing. State that is
  // left unread starts as if the rows were new. This default leaves all unread.
  virtual absl::Status LoadMovedState(
      samplers_internal::StateReader* /*reader*/, const MovedRows& /*moved*/,
      const samplers_internal::LiveRows& /*rows*/) {
    return absl::OkStatus();
  }

  // "Uniform".
  virtual absl::string_view name() const = 0;
  // As Sampler::option_values.
  virtual OptionValues option_values() const { return {}; }
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTOR_H_
