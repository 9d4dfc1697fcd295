// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_
#define RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"

namespace rill {

// A StorageModel for tests of samplers, without ids: every 7th step of a lane
// ends an episode.
//
// A write may be held open between Begin... and Finish, as other threads see
// it: its old rows are retired, its new ones are not there yet. Arguments are
// the test's own and not checked.
//
// Thread-safety: thread-compatible.
class StorageSimulator {
 public:
  explicit StorageSimulator(const Lanes& lanes)
      : model_(lanes, {.ids = false}) {}

  // As Storage::AddObserver: attaches at once.
  void AddObserver(WriteObserver* observer) { model_.AddObserver(observer); }
  // The same with a sampler's, which it hands back.
  std::unique_ptr<Sampler> Attach(std::unique_ptr<Sampler> sampler) {
    AddObserver(sampler->observer());
    return sampler;
  }

  // Appends `steps` to each of lanes [first_lane, first_lane + num_lanes); of
  // more steps than a lane holds only the last are written. `priorities`: one
  // value a written row, lane after lane, or empty.
  void BeginAppend(int64_t first_lane, int64_t num_lanes, int64_t steps,
                   absl::Span<const double> priorities = {});
  void Append(int64_t first_lane, int64_t num_lanes, int64_t steps,
              absl::Span<const double> priorities = {}) {
    BeginAppend(first_lane, num_lanes, steps, priorities);
    Finish();
  }
  // To all lanes.
  void Append(int64_t steps) { Append(0, lanes().count, steps); }

  // Writes live slots in place; each is named once. A part of them, or
  // `replaces` them by others.
  void BeginOverwrite(absl::Span<const Slot> slots, bool replaces = false);
  void Overwrite(absl::Span<const Slot> slots, bool replaces = false) {
    BeginOverwrite(slots, replaces);
    Finish();
  }

  // Publishes the write that is open.
  void Finish() { model_.FinishAll(); }

  void Clear() { model_.Clear(); }

  // All rows are taken for new ones, as after a storage's Load.
  void AttachAgain() { model_.AttachAgain(); }

  const Lanes& lanes() const { return model_.lanes(); }
  // Rows that may be drawn, in the order of their slots.
  std::vector<Slot> Live() const;
  bool IsLive(Slot slot) const { return model_.IsLive(slot); }
  // How often the slot was written before the row that is there; that of the
  // coming row while the slot is being written in place.
  int64_t Generation(Slot slot) const { return model_.writes(slot) - 1; }

 private:
  StorageModel model_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_
