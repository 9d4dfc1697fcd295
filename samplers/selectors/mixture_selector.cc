// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/mixture_selector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/selectors/slot_groups.h"

namespace rill {
namespace {

using samplers_internal::LiveRows;
using samplers_internal::SlotGroups;

constexpr int64_t kUsedUp = 0;  // The only group of them.
// RequestsOf numbers parts of parts in digits of this base, 1 to kMaxParts.
constexpr size_t kMaxParts = 255;

SelectorTraits TraitsOf(const std::vector<MixturePart>& parts) {
  SelectorTraits traits = {.name = "Mixture", .needs_anchor_events = false};
  traits.options.Part("parts", absl::StrCat(parts.size()), {});
  for (size_t i = 0; i < parts.size(); ++i) {
    const SelectorTraits& part = parts[i].selector->traits();
    const std::string name = absl::StrCat("parts.", i);
    traits.options.Part(name, part.name, part.options);
    traits.options.Double(absl::StrCat(name, ".share"), parts[i].share);
    traits.is_weighted |= part.is_weighted;
    traits.picks_by_unit |= part.picks_by_unit;
    traits.needs_order |= part.needs_order;
    traits.may_be_short |= part.may_be_short;
    traits.needs_anchor_events |= part.needs_anchor_events;
  }
  return traits;
}

class MixtureSelector final : public Selector, private Selector::UsedUp {
 public:
  explicit MixtureSelector(std::vector<MixturePart> parts)
      : Selector(TraitsOf(parts)),
        parts_(std::move(parts)),
        uses_up_(
            std::all_of(parts_.begin(), parts_.end(), [](const auto& part) {
              return part.selector->used_up() != nullptr;
            })) {
    double total = 0;
    for (const MixturePart& part : parts_) total += part.share;
    for (MixturePart& part : parts_) part.share /= total;
  }

  absl::Status Prepare(const Request& request,
                       const Anchors& anchors) override {
    // Select asks for the same shares: they are a function of the request.
    const std::vector<Request> requests = RequestsOf(request);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (requests[i].count == 0) continue;
      RILL_RETURN_IF_ERROR(parts_[i].selector->Prepare(requests[i], anchors))
          << "part " << i << " of the mixture, " << parts_[i].selector->name();
    }
    return absl::OkStatus();
  }

  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    const std::vector<Request> requests = RequestsOf(request);
    const size_t begin = draws->size();
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (requests[i].count == 0) continue;
      parts_[i].selector->Select(requests[i], anchors, draws);
    }
    if (!uses_up_) return;
    for (size_t i = begin; i < draws->size(); ++i) Regard((*draws)[i].slot);
  }

  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const LiveRows& rows) override {
    for (const MixturePart& part : parts_) {
      part.selector->UpdatePriorities(draws, priorities, rows);
    }
  }
  // A row that one part has used up may still be drawn by another.
  const Selector::UsedUp* used_up() const override {
    return uses_up_ ? this : nullptr;
  }

  absl::Status SaveState(SavedState* state) const override {
    std::vector<SavedState> parts;
    for (const MixturePart& part : parts_) {
      RILL_ASSIGN_OR_RETURN(SavedState saved,
                            samplers_internal::StateOf(*part.selector));
      parts.push_back(std::move(saved));
    }
    state->Set("parts", std::move(parts));
    if (uses_up_) state->SetPart("used_up", used_up_.Save());  // For its order.
    return absl::OkStatus();
  }
  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override {
    RILL_ASSIGN_OR_RETURN(const auto parts, state.Parts("parts"));
    if (parts.size() != parts_.size()) {
      return state.DoesNotFit(absl::StrCat("parts of the mixture: got ",
                                           parts.size(), ", want ",
                                           parts_.size()));
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      Selector& selector = *parts_[i].selector;
      RILL_RETURN_IF_ERROR(parts[i].CheckType(selector.name(), kStateVersion));
      RILL_RETURN_IF_ERROR(selector.LoadState(
          parts[i],
          {.generations = options.generations,
           .changed = options.changed.In(absl::StrCat("parts.", i))}));
    }
    if (!uses_up_) return absl::OkStatus();
    used_up_.Clear();
    // Slots that all parts have used up are among those of the first.
    std::vector<Slot> of_first;
    parts_[0].selector->used_up()->AddUsedUp(
        std::numeric_limits<int64_t>::max(), &of_first);
    // Rebuilt from the parts; what was saved gives the order only.
    for (const Slot slot : of_first) Regard(slot);
    if (options.changed.Any() || options.changed.has_other_anchors()) {
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(SlotGroups loaded, used_up_.Load(state, "used_up"));
    const auto in_order = static_cast<int64_t>(loaded.Members(kUsedUp).size());
    if (in_order != loaded.size()) {
      return state.Damaged(absl::StrCat("slots that are used up: got ",
                                        in_order, " in group ", kUsedUp,
                                        ", want all ", loaded.size()));
    }
    used_up_ = std::move(loaded);
    return absl::OkStatus();
  }

  ValuesRead values_read() const override {
    ValuesRead read = ValuesRead::None();
    for (const MixturePart& part : parts_) {
      read = read | part.selector->values_read();
    }
    return read;
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    used_up_.Reset(uses_up_ ? lanes.num_slots() : 0);
    for (const MixturePart& part : parts_) {
      part.selector->OnAttach(lanes, cursors);
    }
  }
  void OnRetire(const WriteEvent& event) override {
    for (const MixturePart& part : parts_) part.selector->OnRetire(event);
  }
  void OnWrite(const WriteEvent& event) override {
    for (const MixturePart& part : parts_) part.selector->OnWrite(event);
  }
  void OnClear() override {
    for (const MixturePart& part : parts_) part.selector->OnClear();
  }
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    for (const MixturePart& part : parts_) part.selector->OnAnchorsAdded(slots);
    // A row that is patched is removed and added, and stays used up.
    RegardAll(slots);
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    for (const MixturePart& part : parts_) {
      part.selector->OnAnchorsRemoved(slots);
    }
    RegardAll(slots);
  }
  void OnAnchorsCleared() override {
    used_up_.Clear();
    for (const MixturePart& part : parts_) part.selector->OnAnchorsCleared();
  }

 private:
  int64_t AddUsedUp(int64_t most, std::vector<Slot>* slots) const override {
    return used_up_.AddMembers(kUsedUp, most, slots);
  }
  bool IsUsedUp(Slot slot) const override {
    return used_up_.IsIn(slot, kUsedUp);
  }

  // One a part.
  std::vector<Request> RequestsOf(const Request& request) const {
    const std::vector<int64_t> counts = Counts(request.count);
    std::vector<Request> requests(parts_.size(), request);
    int64_t draws = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      requests[i].count = counts[i];
      requests[i].first_draw = request.first_draw + draws;
      // Other numbers in a mixture in a mixture.
      requests[i].part = request.part * (kMaxParts + 1) + i + 1;
      draws += counts[i];
    }
    return requests;
  }

  // Draws of each part, by largest remainder: every part gets its share rounded
  // down, and the draws that are left go where the most was cut off. So the
  // counts are a function of the request, and no part is off by a whole draw.
  std::vector<int64_t> Counts(int64_t count) const {
    std::vector<int64_t> counts(parts_.size());
    std::vector<std::pair<double, size_t>> remainders;  // Negated, part.
    // Remainders that differ by less are equal but for their rounding. A power
    // of 2, so that few that are equal lie on both sides of a half.
    const double unit =
        static_cast<double>(std::bit_ceil(static_cast<uint64_t>(count))) *
        0x1p-40;
    int64_t left = count;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double wanted = static_cast<double>(count) * parts_[i].share;
      // A share that is whole but for its rounding is whole.
      counts[i] = static_cast<int64_t>(std::floor(wanted + 1e-12 * count));
      counts[i] = std::min(counts[i], left);
      left -= counts[i];
      // Rounded to units, so that the order does not hang on the last bits of
      // products. Equal ones go by the number of the part.
      remainders.emplace_back(
          std::round((static_cast<double>(counts[i]) - wanted) / unit), i);
    }
    std::sort(remainders.begin(), remainders.end());
    for (int64_t i = 0; i < left; ++i) {
      ++counts[remainders[i % remainders.size()].second];
    }
    return counts;
  }

  // Finds out whether all parts have used up a slot. Only where all parts can
  // tell (uses_up_).
  void Regard(Slot slot) {
    for (const MixturePart& part : parts_) {
      if (part.selector->used_up()->IsUsedUp(slot)) continue;
      used_up_.Remove(slot);
      return;
    }
    used_up_.Put(slot, kUsedUp);
  }
  void RegardAll(absl::Span<const SlotRange> slots) {
    if (uses_up_) ForEachSlot(slots, [this](Slot slot) { Regard(slot); });
  }

  std::vector<MixturePart> parts_;  // Shares sum to 1.
  const bool uses_up_;              // All parts do.
  SlotGroups used_up_;              // By all parts.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Selector>> MakeMixtureSelector(
    std::vector<MixturePart> parts) {
  if (parts.empty() || parts.size() > kMaxParts) {
    return InvalidArgument("MakeMixtureSelector: parts: got ", parts.size(),
                           ", want [1, ", kMaxParts,
                           "]; a part may be a mixture itself");
  }
  double total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    total += parts[i].share;
    if (parts[i].selector == nullptr) {
      return InvalidArgument("MakeMixtureSelector: parts[", i,
                             "].selector: got null, want one");
    }
    if (parts[i].share > 0 && std::isfinite(total)) continue;
    return InvalidArgument("MakeMixtureSelector: parts[", i, "].share: got ",
                           parts[i].share,
                           ", want a finite one > 0, and a finite sum");
  }
  return std::make_unique<MixtureSelector>(std::move(parts));
}

}  // namespace rill
