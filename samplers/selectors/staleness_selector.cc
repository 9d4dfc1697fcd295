// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/staleness_selector.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
#include "rill/slots/slot_array.h"

namespace rill {
namespace {

using samplers_internal::SlotGroups;

constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
constexpr double kTwoToMinus53 = 1.0 / (uint64_t{1} << 53);

// A learner may report any version, so the distance may need 64 bits.
// Without overflow.
int64_t Staleness(int64_t current, int64_t version) {
  if (version >= current) return 0;
  const uint64_t distance =
      static_cast<uint64_t>(current) - static_cast<uint64_t>(version);
  return static_cast<int64_t>(
      std::min<uint64_t>(distance, std::numeric_limits<int64_t>::max()));
}

class StalenessSelector final : public Selector {
 public:
  explicit StalenessSelector(const StalenessOptions& options)
      : Selector(
            {.name = "Staleness",
             .options = OptionValues()
                            .Int("max_staleness", options.max_staleness)
                            .Function("weight", options.weight != nullptr)
                            .Function("current_version",
                                      options.current_version != nullptr)}),
        options_(options) {}

  absl::Status Prepare(const Request& request, const Anchors& anchors) override;

  void Select(const Request& request, const Anchors& /*anchors*/,
              std::vector<Draw>* draws) override {
    const double total = shares_.back().end;
    const Rng rng(request.seed, RngStream::kSampler);
    for (int64_t i = 0; i < request.count; ++i) {
      const Rng::Block bits = rng.Bits(
          request.batch_number, static_cast<uint32_t>(request.first_draw + i));
      // One block a draw: its low half picks the version, its high half the
      // row.
      const uint64_t low = LowBits64(bits);
      const uint64_t high = HighBits64(bits);
      const double point =
          total * (static_cast<double>(low >> 11) * kTwoToMinus53);
      auto share =
          std::upper_bound(shares_.begin(), shares_.end(), point,
                           [](double p, const Share& s) { return p < s.end; });
      // Rounding may put the point on the end.
      if (share == shares_.end()) --share;
      const std::vector<Slot>& slots = *share->slots;
      const int64_t n = BoundedInt(high, static_cast<int64_t>(slots.size()));
      draws->push_back({.slot = slots[n]});
    }
  }

  absl::Status SaveState(SavedState* state) const override {
    state->Set("highest", highest_);
    state->SetPart("versions", samplers_internal::SaveSlotArray(versions_));
    state->SetPart("anchors", anchors_.Save());
    return absl::OkStatus();
  }

  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override {
    RILL_ASSIGN_OR_RETURN(const auto highest, state.Get<int64_t>("highest"));
    RILL_ASSIGN_OR_RETURN(
        auto versions,
        samplers_internal::LoadSlotArray<int64_t>(used_, state, "versions"));
    if (options.changed.has_other_anchors()) {
      highest_ = highest;
      versions_ = std::move(versions);
      anchors_.Regroup([this](Slot slot) { return versions_.Get(slot); });
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(SlotGroups anchors, anchors_.Load(state, "anchors"));
    // Groups are by version: one that does not agree would draw rows under the
    // weight of another.
    for (const auto& [group, slots] : anchors.groups()) {
      for (const Slot slot : slots) {
        if (versions.Get(slot) == group) continue;
        return state.Damaged(absl::StrCat(
            "group of slot ", slot, " of version ", versions.Get(slot),
            ": got ", group, ", want its version"));
      }
    }
    highest_ = highest;
    versions_ = std::move(versions);
    anchors_ = std::move(anchors);
    return absl::OkStatus();
  }

  ValuesRead values_read() const override {
    return {.trajectories = false, .priorities = false};
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    used_.OnAttach(lanes, cursors);
    versions_.Reset(lanes.num_slots());
    anchors_.Reset(lanes.num_slots());
    highest_ = kNone;
  }
  void OnWrite(const WriteEvent& event) override {
    used_.OnWrite(event);
    // A part written in place that does not tell versions leaves them.
    const bool is_new = event.is_append || event.is_replacement;
    if (!is_new && event.policy_versions.empty()) return;
    size_t row = 0;
    ForEachSlot(event.written, [&](Slot slot) {
      const int64_t version =
          event.policy_versions.empty() ? 0 : event.policy_versions[row];
      if (versions_.Get(slot) != version) versions_.At(slot) = version;
      highest_ = std::max(highest_, version);
      ++row;
    });
  }
  void OnClear() override {
    used_.OnClear();
    versions_.Reset(versions_.num_slots());
  }

  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    // The version was noted by OnWrite of this selector, which comes before
    // that of the unit.
    ForEachSlot(slots,
                [this](Slot slot) { anchors_.Put(slot, versions_.Get(slot)); });
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) { anchors_.Remove(slot); });
  }
  void OnAnchorsCleared() override { anchors_.Clear(); }

 private:
  // The anchors of one version, and the sum of the weights up to them.
  struct Share {
    double end = 0;
    const std::vector<Slot>* slots = nullptr;
  };

  const StalenessOptions options_;
  samplers_internal::UsedSlots used_;
  SlotArray<int64_t> versions_;  // Of every row, an anchor or not.
  SlotGroups anchors_;           // By version.
  int64_t highest_ = kNone;      // That was ever written.
  std::vector<Share> shares_;    // Those with a weight > 0, for one plan.
};

absl::Status StalenessSelector::Prepare(const Request& /*request*/,
                                        const Anchors& /*anchors*/) {
  shares_.clear();
  const int64_t current =
      options_.current_version ? options_.current_version() : highest_;
  double total = 0;
  for (const auto& [version, slots] : anchors_.groups()) {
    const int64_t staleness = Staleness(current, version);
    if (options_.max_staleness >= 0 && staleness > options_.max_staleness) {
      continue;
    }
    const double weight = options_.weight
                              ? options_.weight(staleness)
                              : 1.0 / (static_cast<double>(staleness) + 1);
    if (!std::isfinite(weight) || weight < 0) {
      return InvalidArgument("weight of staleness ", staleness, ": got ",
                             weight, ", want a finite one >= 0");
    }
    // Such a version has no share, so that no point can fall on it.
    if (weight == 0) continue;
    total += weight * static_cast<double>(slots.size());
    // Rows of one version have one weight, so a plan looks at versions, not
    // rows. The pointer holds: Select follows before the groups change.
    shares_.push_back({.end = total, .slots = &slots});
  }
  if (total > 0 && std::isfinite(total)) return absl::OkStatus();
  return FailedPrecondition(
      "sum of the weights of ", anchors_.size(), " items of ",
      anchors_.groups().size(), " policy versions at version ", current,
      ": got ", total, ", want a finite one > 0; write newer rows",
      options_.max_staleness >= 0
          ? absl::StrCat(", or raise max_staleness = ", options_.max_staleness)
          : "");
}

}  // namespace

std::unique_ptr<Selector> MakeStalenessSelector(
    const StalenessOptions& options) {
  return std::make_unique<StalenessSelector>(options);
}

std::unique_ptr<Sampler> MakeStalenessAwareSampler(
    const StalenessOptions& options) {
  return *MakeSampler(MakeStalenessSelector(options), MakeTransitionUnit(),
                      "StalenessAwareSampler");
}

}  // namespace rill
