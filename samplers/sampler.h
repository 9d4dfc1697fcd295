// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SAMPLER_H_
#define RILL_SAMPLERS_SAMPLER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/samplers/sampler_traits.h"  // IWYU pragma: export
#include "rill/slots/sample_plan.h"        // IWYU pragma: export
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// Rows that lie in other slots than they did when a sampler's state was saved:
// those of a storage that was loaded into lanes of another capacity.
struct MovedRows {
  struct Range {
    Slot from = 0;
    Slot to = 0;
    int64_t count = 0;
  };
  Lanes from = {};  // The lanes of the save.
  std::vector<Range> ranges =
      {};  // Apart from one another, ascending by `from`.

  // For lanes that keep their cursors and their newest rows, as
  // StorageLoadOptions::accept_other_capacity; as many lanes as cursors.
  static MovedRows Of(const Lanes& from, const Lanes& to,
                      absl::Span<const Cursor> cursors);
};

// Chooses rows of a storage by number. It watches the storage's writes and
// plans; it never sees what rows hold.
//
// A plan is a pure function of (seed, batch_number, batch_size) and of the
// history of writes and priorities. Equal runs give equal batches on every
// machine, and there is no generator to save.
//
// It is registered with the storage (Storage::AddObserver) before the first
// Plan. Attached again to equal lanes (a storage that was loaded), it takes all
// rows for new ones: what was drawn before is stale.
//
// Thread-safety: thread-safe. Events come under the storage's lock while other
//   threads plan, so an implementation guards its state itself.
// Implementations pass samplers/conformance.
class Sampler : public WriteObserver {
 public:
  static constexpr int64_t kMaxBatchSize = int64_t{1} << 24;

  struct Request {
    int64_t batch_size = 0;  // Items, in [1, kMaxBatchSize].
    uint64_t seed = 0;
    uint64_t batch_number = 0;  // Counts the batches of one buffer.
  };

  const SamplerTraits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }
  // The observer that the storage notifies.
  WriteObserver* observer() { return this; }

  // Fills `plan`, reusing its memory. Only live slots are drawn, each with the
  // generation of the row that a read will find there. That is the slot's own,
  // or its next one while a write in place is in flight. FAILED_PRECONDITION,
  // `plan` unchanged, where there are too few rows (names both numbers).
  // INVALID_ARGUMENT, `plan` unchanged, where the batch size is not one that
  // this sampler can make (never above kMaxBatchSize).
  virtual absl::Status Plan(const Request& request, SamplePlan* plan) = 0;

  // Gives rows that were drawn a new priority. One value a draw, finite and
  // >= 0, else INVALID_ARGUMENT and nothing has changed. A draw whose row was
  // overwritten since is ignored; of equal slots the later wins. Samplers
  // without priorities check the arguments and do nothing else.
  virtual absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                        absl::Span<const float> priorities);

  // is_current[i] != 0 where the row of draws[i] is still there: neither
  // overwritten nor cleared since, nor being so now. One value a draw.
  virtual void FindCurrent(absl::Span<const Draw> draws,
                           absl::Span<uint8_t> is_current) const = 0;

  // generations[i] = that of the row in slots[i], negative where there is none
  // now; one value a slot, slots in range (slots/generations.h).
  virtual void GetGenerations(absl::Span<const Slot> slots,
                              absl::Span<int64_t> generations) const = 0;

  // How many plans like `request` are left in the epoch of the next one, that
  // one among them, as rows are now; 0 where there are no items.
  // FAILED_PRECONDITION of a sampler without epochs, else errors as Plan.
  // Cost: O(slots left) where some begin no item, else O(1).
  struct EpochRest {
    uint64_t epoch = 0;
    int64_t plans = 0;
  };
  virtual absl::StatusOr<EpochRest> RestOfEpoch(const Request& request) const;

  // Rows that are stored and will not be drawn again, so that new rows may have
  // their slots. In a consuming sampler these were drawn as often as may be.
  // Appends the first `most` of them to `slots`, in an order that is a function
  // of the history; returns how many there are. Thread-safe; a write or a plan
  // may change it at once.
  virtual int64_t AddUsedUp(int64_t /*most*/,
                            std::vector<Slot>* /*slots*/) const {
    return 0;
  }

  // The state that a plan depends on beside the request and the stored rows, as
  // the bytes of a SavedState (base/state/saved_state.h).
  virtual absl::StatusOr<std::string> SaveState() const = 0;

  struct LoadOptions {
    // The rows have moved since the save, or are gone; null: they have not.
    // The priorities of a prioritized selector that stands alone follow their
    // rows; alpha, beta and the largest priority come along. All else starts as
    // if the rows were new. That is keys of heaps, the inner selector of a
    // consuming one, generations, cuts of trajectories and all of a mixture. So
    // do the order of an epoch, orders of arrival and counts of draws.
    const MovedRows* moved = nullptr;
    // Options, by their names in traits().options, that had other values: they
    // keep those of this sampler. The rest of the state follows them:
    // - Anchors are those of the new unit, in the order of the rows where the
    //   saved order does not fit.
    // - An epoch begins anew where `shuffle` changed.
    // - How often a row was drawn says whether it is used up.
    // - A trajectory has lost 0 steps where the old `period` is no multiple of
    //   the new one.
    absl::Span<const std::string> changed = {};
  };
  // Follows the registration with a storage that holds the same rows as at the
  // time of the save, but for those that `options` name. DATA_LOSS or
  // FAILED_PRECONDITION, state unchanged, where the bytes do not fit;
  // FAILED_PRECONDITION of a sampler whose traits do not take these options.
  absl::Status LoadState(absl::string_view state, const LoadOptions& options);
  absl::Status LoadState(absl::string_view state) {
    return LoadState(state, LoadOptions());
  }

 protected:
  explicit Sampler(SamplerTraits traits) : traits_(std::move(traits)) {}

 private:
  // LoadState with options that the traits take.
  virtual absl::Status DoLoadState(absl::string_view state,
                                   const LoadOptions& options) = 0;

  const SamplerTraits traits_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SAMPLER_H_
