// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_OPEN_OPTIONS_H_
#define RILL_REPLAY_OPEN_OPTIONS_H_

#include <vector>

#include "rill/replay/options/option_changes.h"

namespace rill {

// How ReplayBuffer::Open takes a save that is not wholly like the options.
struct BufferOpenOptions {
  // A storage of another capacity, which is FAILED_PRECONDITION otherwise,
  // does: each lane keeps its newest rows, as many as it has slots
  // (StorageLoadOptions). Priorities follow their rows; what else the sampler
  // knows starts as if these rows were new (Sampler::LoadOptions). Batches
  // that were made ahead are of slots that are no more, and are left out:
  // their numbers are not drawn again.
  bool accept_other_capacity = false;
  // For a position (SavePosition). Where some of its rows were overwritten
  // since, which is FAILED_PRECONDITION otherwise, the storage stays as it is,
  // with its newest rows. Priorities stay with the rows of the position that
  // are still there; all else is as with accept_other_capacity. The rate
  // limiter's counts are those of the position.
  bool accept_newer = false;
  // Other options of sampler, unit, transforms and writer, which are
  // FAILED_PRECONDITION otherwise, do: they take the values of `options`, and
  // all else of the state is as saved (Sampler::LoadOptions). Batches
  // that were made ahead are drawn anew then, with their numbers, unless it
  // is the writer alone that changed; what was used up or learned for them
  // stays so. A part of another kind is refused all the same, but for a
  // writer without a state.
  bool accept_options = false;
  // Not null: what is other than it was saved, whether that is accepted or
  // not; unchanged where Open fails before it has compared.
  std::vector<OptionChange>* changed_options = nullptr;
};

}  // namespace rill

#endif  // RILL_REPLAY_OPEN_OPTIONS_H_
