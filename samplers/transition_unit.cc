// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/transition_unit.h"

#include <vector>

#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/changed_options.h"
#include "rill/slots/live_slots.h"

namespace rill {
namespace {

class LiveAnchors final : public Anchors {
 public:
  int64_t size() const override { return live.size(); }
  Slot At(int64_t n) const override { return live.Nth(n); }
  bool Contains(Slot slot) const override { return live.Contains(slot); }
  Slot Pick(const Rng::Block& bits) const override {
    // As Rng::UniformInt.
    return live.Nth(BoundedInt(LowBits64(bits), live.size()));
  }

  void PickMany(absl::Span<const Rng::Block> bits,
                absl::Span<Slot> slots) const override {
    // First all numbers, then their slots in one call, which searches the lanes
    // once for all.
    const int64_t size = live.size();
    for (size_t i = 0; i < bits.size(); ++i) {
      slots[i] = BoundedInt(LowBits64(bits[i]), size);
    }
    live.NthOfMany(slots.first(bits.size()));
  }

  LiveSlots live;
};

class TransitionUnit final : public Unit {
 public:
  TransitionUnit() : Unit({.name = "Transition", .is_row = true}) {}

  const Anchors& anchors() const override { return anchors_; }
  void SetListener(AnchorListener* listener) override { listener_ = listener; }

  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    return batch_size;
  }

  absl::Status CheckAnchors() const override {
    if (anchors_.size() > 0) return absl::OkStatus();
    return FailedPrecondition(
        "live rows: got 0, want >= 1; write more rows first");
  }

  void Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
              SamplePlan* /*plan*/) const override {}

  void SaveState(SavedState* /*state*/) const override {}
  absl::Status LoadState(
      const SavedState& /*state*/,
      const samplers_internal::ChangedOptions& /*changed*/) override {
    return absl::OkStatus();
  }

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    anchors_.live.OnAttach(lanes, cursors);
    if (listener_ != nullptr) listener_->OnAnchorsCleared();
  }

  // Rows that are written in place stay live: a read waits for the write.
  void OnRetire(const WriteEvent& event) override {
    anchors_.live.OnRetire(event);
    if (listener_ != nullptr && event.is_append) {
      listener_->OnAnchorsRemoved(event.retired);
    }
  }

  void OnWrite(const WriteEvent& event) override {
    anchors_.live.OnWrite(event);
    if (listener_ == nullptr) return;
    if (event.is_append) {
      listener_->OnAnchorsAdded(event.written);
      return;
    }
    // Without those that an append in flight has retired meanwhile.
    still_live_.clear();
    ForEachSlot(event.written, [this](Slot slot) {
      if (!anchors_.live.Contains(slot)) return;
      still_live_.push_back({.first = slot, .count = 1});
    });
    listener_->OnAnchorsRemoved(still_live_);
    listener_->OnAnchorsAdded(still_live_);
  }

  void OnClear() override {
    anchors_.live.OnClear();
    if (listener_ != nullptr) listener_->OnAnchorsCleared();
  }

 private:
  LiveAnchors anchors_;
  AnchorListener* listener_ = nullptr;
  std::vector<SlotRange> still_live_;  // Memory of OnWrite.
};

}  // namespace

std::unique_ptr<Unit> MakeTransitionUnit() {
  return std::make_unique<TransitionUnit>();
}

}  // namespace rill
