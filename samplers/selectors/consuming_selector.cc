// SPDX-License-Identifier: Apache-2.0
// The unit's anchors are in two groups: those left and those consumed. The
// inner selector knows the first group only, as anchors that come and go. A
// draw may take its row out of that group, so a batch is made one draw at a
// time.
#include "rill/samplers/selectors/consuming_selector.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/slot_array_state.h"
#include "rill/samplers/selectors/slot_groups.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/slot_array.h"

namespace rill {
namespace {

using samplers_internal::LiveRows;
using samplers_internal::SlotGroups;

// Groups of anchors.
constexpr int64_t kLeft = 0;
constexpr int64_t kConsumed = 1;

class AnchorsLeft final : public Anchors {
 public:
  int64_t size() const override {
    return static_cast<int64_t>(all.Members(kLeft).size());
  }
  Slot At(int64_t n) const override { return all.Members(kLeft)[n]; }
  bool Contains(Slot slot) const override { return all.IsIn(slot, kLeft); }
  Slot Pick(const Rng::Block& bits) const override {
    return At(BoundedInt(LowBits64(bits), size()));
  }

  SlotGroups all;
};

SelectorTraits TraitsOf(const ConsumingOptions& options) {
  const SelectorTraits& inner = options.inner->traits();
  return {.name = "Consuming",
          .options = OptionValues()
                         .Int("max_times_sampled", options.max_times_sampled)
                         .Part("inner", inner.name, inner.options),
          .is_weighted = inner.is_weighted,
          .needs_order = inner.needs_order,
          .may_be_short = true};
}

class ConsumingSelector final : public Selector, private Selector::UsedUp {
 public:
  explicit ConsumingSelector(ConsumingOptions options)
      : Selector(TraitsOf(options)),
        most_(options.max_times_sampled),
        inner_(std::move(options.inner)) {}

  absl::Status Prepare(const Request& request,
                       const Anchors& /*anchors*/) override {
    if (anchors_.size() == 0) {
      return FailedPrecondition("items that were sampled fewer than ", most_,
                                " times: got 0 of ", anchors_.all.size(),
                                ", want >= 1; write more rows");
    }
    Request one = request;
    one.count = 1;
    return inner_->Prepare(one, anchors_);
  }

  void Select(const Request& request, const Anchors& /*anchors*/,
              std::vector<Draw>* draws) override {
    // No more than are left will come.
    // Divided, as the product of both may overflow.
    const int64_t count = request.count / most_ < anchors_.size()
                              ? request.count
                              : anchors_.size() * most_;
    draws->reserve(draws->size() + count);
    Request one = request;
    one.count = 1;
    for (int64_t i = 0; i < request.count && anchors_.size() > 0; ++i) {
      one.first_draw = request.first_draw + i;
      // The first draw is prepared. Where none of those that are left suits
      // the inner one, they wait.
      if (i > 0 && !inner_->Prepare(one, anchors_).ok()) return;
      const size_t before = draws->size();
      inner_->Select(one, anchors_, draws);
      if (draws->size() == before) return;
      Count(draws->back().slot);
    }
  }

  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const LiveRows& rows) override {
    inner_->UpdatePriorities(draws, priorities, rows);
  }
  const Selector::UsedUp* used_up() const override { return this; }

  absl::Status SaveState(SavedState* state) const override {
    state->Set("most", most_);
    state->SetPart("counts", samplers_internal::SaveSlotArray(counts_));
    state->SetPart("anchors", anchors_.all.Save());
    RILL_ASSIGN_OR_RETURN(SavedState inner,
                          samplers_internal::StateOf(*inner_));
    state->SetPart("inner", std::move(inner));
    return absl::OkStatus();
  }

  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override {
    const auto& changed = options.changed;
    RILL_ASSIGN_OR_RETURN(const auto most, state.Get<int64_t>("most"));
    RILL_ASSIGN_OR_RETURN(const SavedState* const inner,
                          state.Part("inner", inner_->name(), kStateVersion));
    if (most != most_ && !changed.Has("max_times_sampled")) {
      return state.DoesNotFit(
          absl::StrCat("max_times_sampled: got ", most, ", want ", most_));
    }
    RILL_ASSIGN_OR_RETURN(
        auto counts,
        samplers_internal::LoadSlotArray<int64_t>(used_, state, "counts"));
    for (Slot slot = counts.NextValue(0); slot < counts.num_slots();
         slot = counts.NextValue(slot + 1)) {
      if (counts.Get(slot) >= 0) continue;
      return state.Damaged(absl::StrCat("draws of slot ", slot, ": got ",
                                        counts.Get(slot), ", want >= 0"));
    }
    // The inner selector knows the anchors that were left before; it is
    // notified of the difference.
    const std::map<int64_t, std::vector<Slot>> before = anchors_.all.groups();
    if (!changed.has_other_anchors()) {
      RILL_ASSIGN_OR_RETURN(anchors_.all, LoadGroups(state, counts, most));
    }
    counts_ = std::move(counts);
    if (most != most_ || changed.has_other_anchors()) {
      // Groups are a function of the counts; only the order in them is lost.
      anchors_.all.Regroup([this](Slot slot) {
        return counts_.Get(slot) < most_ ? kLeft : kConsumed;
      });
    }
    // The anchors of the inner selector follow here; then it loads its order.
    for (const auto& [group, slots] : before) {
      for (const Slot slot : slots) {
        const bool is_left = anchors_.Contains(slot);
        if (is_left == (group == kLeft)) continue;
        if (is_left) {
          TellAdded(slot);
        } else {
          TellRemoved(slot);
        }
      }
    }
    return inner_->LoadState(*inner, {.changed = changed.In("inner")});
  }

  ValuesRead values_read() const override { return inner_->values_read(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    used_.OnAttach(lanes, cursors);
    counts_.Reset(lanes.num_slots());
    anchors_.all.Reset(lanes.num_slots());
    inner_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { inner_->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override {
    used_.OnWrite(event);
    // Rows that are patched stay as used up as they were.
    const absl::Span<const SlotRange> fresh =
        event.is_patch ? absl::Span<const SlotRange>() : event.written;
    // Before the unit reports these rows as anchors again, which groups them by
    // their counts.
    ForEachSlot(fresh, [this](Slot slot) {
      if (counts_.Get(slot) != 0) counts_.At(slot) = 0;
    });
    inner_->OnWrite(event);
  }
  void OnClear() override {
    used_.OnClear();
    counts_.Reset(counts_.num_slots());
    inner_->OnClear();
  }

  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) {
      const bool is_left = counts_.Get(slot) < most_;
      if (is_left && !anchors_.Contains(slot)) TellAdded(slot);
      anchors_.all.Put(slot, is_left ? kLeft : kConsumed);
    });
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) {
      if (anchors_.Contains(slot)) TellRemoved(slot);
      anchors_.all.Remove(slot);
    });
  }
  void OnAnchorsCleared() override {
    anchors_.all.Clear();
    inner_->OnAnchorsCleared();
  }

 private:
  int64_t AddUsedUp(int64_t most, std::vector<Slot>* slots) const override {
    return anchors_.all.AddMembers(kConsumed, most, slots);
  }
  bool IsUsedUp(Slot slot) const override {
    return anchors_.all.IsIn(slot, kConsumed);
  }

  // Loads groups of rows that were drawn so often and may be drawn `most`
  // times.
  absl::StatusOr<SlotGroups> LoadGroups(const SavedState& state,
                                        const SlotArray<int64_t>& counts,
                                        int64_t most) const {
    RILL_ASSIGN_OR_RETURN(SlotGroups loaded,
                          anchors_.all.Load(state, "anchors"));
    for (const auto& [group, slots] : loaded.groups()) {
      for (const Slot slot : slots) {
        const int64_t drawn = counts.Get(slot);
        if ((group == kLeft && drawn >= 0 && drawn < most) ||
            (group == kConsumed && drawn >= most)) {
          continue;
        }
        return state.Damaged(
            absl::StrCat("slot ", slot, " of group ", group, ": got ", drawn,
                         " draws, want fewer than ", most, " in group ", kLeft,
                         ", else group ", kConsumed));
      }
    }
    return loaded;
  }
  void Count(Slot slot) {
    if (++counts_.At(slot) < most_) return;
    // Out of the group first: the inner selector may look at the anchors.
    anchors_.all.Put(slot, kConsumed);
    TellRemoved(slot);
  }
  void TellAdded(Slot slot) {
    const SlotRange range = {.first = slot, .count = 1};
    inner_->OnAnchorsAdded({&range, 1});
  }
  void TellRemoved(Slot slot) {
    const SlotRange range = {.first = slot, .count = 1};
    inner_->OnAnchorsRemoved({&range, 1});
  }

  const int64_t most_;
  const std::unique_ptr<Selector> inner_;
  samplers_internal::UsedSlots used_;
  SlotArray<int64_t> counts_;  // Draws of the row that is there.
  AnchorsLeft anchors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Selector>> MakeConsumingSelector(
    ConsumingOptions options) {
  if (options.max_times_sampled < 1) {
    return InvalidArgument("MakeConsumingSelector: max_times_sampled: got ",
                           options.max_times_sampled, ", want >= 1");
  }
  if (options.inner == nullptr) options.inner = MakeUniformSelector();
  if (options.inner->name() == "Mixture") {
    return InvalidArgument(
        "MakeConsumingSelector: inner: got a mixture, want another one; mix "
        "consuming selectors instead");
  }
  return std::make_unique<ConsumingSelector>(std::move(options));
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeConsumingSampler(
    ConsumingOptions options) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Selector> selector,
                        MakeConsumingSelector(std::move(options)));
  return MakeSampler(std::move(selector), MakeTransitionUnit(),
                     "ConsumingSampler");
}

}  // namespace rill
