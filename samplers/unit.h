// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNIT_H_
#define RILL_SAMPLERS_UNIT_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/unit_traits.h"  // IWYU pragma: export
#include "rill/slots/write_observer.h"

namespace rill {

// Makes an item of an anchor: one row, a slice of T steps, a whole trajectory.
// It is the second half of a sampler (selector.h is the other). It watches
// writes to know which rows can be anchors, and plans rows; arithmetic on their
// values is a transform's.
//
// Errors of NumAnchors and CheckAnchors read "<what>: got <value>, want
// <range>"; the sampler puts its name before them.
//
// Thread-safety: thread-compatible; the sampler's mutex guards it.
class Unit : public WriteObserver {
 public:
  const UnitTraits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }

  virtual const Anchors& anchors() const = 0;
  // The listener is notified of them; set once, before the first event. Not
  // owned.
  virtual void SetListener(AnchorListener* listener) = 0;

  // How many anchors a batch of `batch_size` takes: batch_size where an item is
  // one row or of any length, batch_size / T where each is T rows.
  // INVALID_ARGUMENT names both where it does not divide.
  virtual absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const = 0;

  // FAILED_PRECONDITION where there is no anchor, with what there is and what
  // the unit wants ("trajectories of 2 to 10 rows, want one of 20").
  virtual absl::Status CheckAnchors() const = 0;

  // Fills plan->rows, segments and mask with what plan->draws become; leaves
  // them empty where each draw is one row. Fills the lists of plan->context,
  // which are as many as the traits' layout has. All of these are empty before.
  // The sampler fills in the rows' generations. May need random numbers of its
  // own: all of (rng, batch_number) are the unit's.
  virtual void Expand(const Rng& rng, uint64_t batch_number,
                      SamplePlan* plan) const = 0;

  // A part of the sampler's state: what the rows themselves do not tell when
  // they are attached again. LoadState tells the listener where it changes the
  // anchors; the selector's follows. With an error nothing has changed that
  // loading what was saved before does not put right.
  virtual void SaveState(SavedState* state) const = 0;
  virtual absl::Status LoadState(
      const SavedState& state,
      const samplers_internal::ChangedOptions& changed) = 0;
  static constexpr int64_t kStateVersion = 1;

 protected:
  explicit Unit(UnitTraits traits) : traits_(std::move(traits)) {}

 private:
  const UnitTraits traits_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_UNIT_H_
