// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTOR_H_
#define RILL_SAMPLERS_SELECTOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector_traits.h"  // IWYU pragma: export
#include "rill/slots/generations.h"
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

  // The epochs of a selector that goes through its anchors one by one.
  class Epochs {
   public:
    virtual ~Epochs() = default;
    // SamplePlan::epoch of the last Select; 0 before the first.
    virtual uint64_t LastEpoch() const = 0;
    // As Sampler::RestOfEpoch, of anchors: `request` as the next Select's.
    virtual Sampler::EpochRest RestOfEpoch(const Request& request,
                                           const Anchors& anchors) const = 0;
  };

  // The anchors that a selector will not draw again. An anchor becomes one by
  // Select, or when it is added, and ceases to be one when it is removed.
  class UsedUp {
   public:
    virtual ~UsedUp() = default;
    // As Sampler::AddUsedUp, of anchors.
    virtual int64_t AddUsedUp(int64_t most, std::vector<Slot>* slots) const = 0;
    // True if the slot is among those; O(1).
    virtual bool IsUsedUp(Slot slot) const = 0;
  };

  const SelectorTraits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }

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
  // says so (the last batch of an epoch), and the traits (may_be_short).
  virtual void Select(const Request& request, const Anchors& anchors,
                      std::vector<Draw>* draws) = 0;

  // As Sampler::UpdatePriorities; arguments were checked, `rows` tells stale
  // draws.
  virtual void UpdatePriorities(absl::Span<const Draw> /*draws*/,
                                absl::Span<const float> /*priorities*/,
                                const samplers_internal::LiveRows& /*rows*/) {}

  // Null where it has none. Always the same; lives as long as the selector.
  virtual const Epochs* epochs() const { return nullptr; }
  virtual const UsedUp* used_up() const { return nullptr; }

  // A part of the sampler's state; nothing of a selector that keeps none. Fails
  // where it lies on a device that does.
  virtual absl::Status SaveState(SavedState* /*state*/) const {
    return absl::OkStatus();
  }
  static constexpr int64_t kStateVersion = 1;

  struct LoadOptions {
    // Sampler::LoadOptions::moved, and which rows are live now. Both or none;
    // none where the traits do not take them.
    const MovedRows* moved = nullptr;
    const samplers_internal::LiveRows* rows = nullptr;
    // The rows have these from here on, where they have not moved.
    const Generations* generations = nullptr;
    samplers_internal::ChangedOptions changed = {};
  };
  // Follows the attaching and the unit's LoadState. With an error nothing has
  // changed that loading what was saved before does not put right. Where rows
  // have moved, an error changes nothing, and rows whose state is left unread
  // start as new ones.
  virtual absl::Status LoadState(const SavedState& /*state*/,
                                 const LoadOptions& /*options*/) {
    return absl::OkStatus();
  }

  // No effect; a selector takes those events that it needs.
  void OnRetire(const WriteEvent& /*event*/) override {}
  void OnAnchorsAdded(absl::Span<const SlotRange> /*slots*/) override {}
  void OnAnchorsRemoved(absl::Span<const SlotRange> /*slots*/) override {}
  void OnAnchorsCleared() override {}

 protected:
  explicit Selector(SelectorTraits traits) : traits_(std::move(traits)) {}

 private:
  const SelectorTraits traits_;
};

namespace samplers_internal {

// A selector's state as a part of its owner's.
inline absl::StatusOr<SavedState> StateOf(const Selector& selector) {
  SavedState state(selector.name(), Selector::kStateVersion);
  RILL_RETURN_IF_ERROR(selector.SaveState(&state));
  return state;
}

}  // namespace samplers_internal
}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTOR_H_
