// SPDX-License-Identifier: Apache-2.0
// An epoch is a keyed permutation of the slots that have held a row. It is
// computed where it is asked, so an epoch over 600 million rows takes no
// memory. Turns whose slot is no anchor are passed over. Where that would be
// half of them or more, the plan that begins the epoch lists the anchors
// instead.
#include "rill/samplers/selectors/without_replacement.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/keyed_permutation.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/samplers/transition_unit.h"

namespace rill {
namespace {

class WithoutReplacementSelector final : public Selector,
                                         private Selector::Epochs {
 public:
  // Its option values are without first_epoch, where the state begins.
  explicit WithoutReplacementSelector(const WithoutReplacementOptions& options)
      : Selector({.name = "WithoutReplacement",
                  .options = OptionValues()
                                 .Bool("shuffle", options.shuffle)
                                 .Bool("drop_last", options.drop_last),
                  .may_be_short = !options.drop_last,
                  .needs_anchor_events = false}),
        options_(options),
        rest_(options.first_epoch) {}

  absl::Status Prepare(const Request& request,
                       const Anchors& anchors) override {
    if (!options_.drop_last || anchors.size() >= request.count) {
      return absl::OkStatus();
    }
    return FailedPrecondition(
        "items of an epoch: got ", anchors.size(), ", want >= ", request.count,
        ", a batch, because drop_last is set; write more rows first");
  }

  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    const size_t begin = draws->size();
    Take(request, anchors, draws);
    // Takes the rest of this epoch. Take has then begun the next one, from
    // which the second call draws. A rest that is too small is passed over.
    const size_t taken = draws->size() - begin;
    // With drop_last a rest that is less than a batch is no batch; without it,
    // any draw is one.
    const bool is_enough = options_.drop_last
                               ? taken == static_cast<size_t>(request.count)
                               : taken > 0;
    if (is_enough) return;
    draws->resize(begin);
    Take(request, anchors, draws);
  }

  absl::Status SaveState(SavedState* state) const override {
    state->Set("epoch", static_cast<int64_t>(epoch_));
    state->Set("place", place_);
    state->Set("slots", used_.size());
    // 0: there is no list; 1: it is ascending; 2: in an order of its own.
    state->Set("order", int64_t{!is_listed_ ? 0 : is_ordered_ ? 2 : 1});
    state->Set("list", list_);
    return absl::OkStatus();
  }

  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override {
    RILL_ASSIGN_OR_RETURN(const auto epoch, state.Get<int64_t>("epoch"));
    RILL_ASSIGN_OR_RETURN(const auto place, state.Get<int64_t>("place"));
    RILL_ASSIGN_OR_RETURN(const auto slots, state.Get<int64_t>("slots"));
    RILL_ASSIGN_OR_RETURN(const auto order, state.Get<int64_t>("order"));
    RILL_ASSIGN_OR_RETURN(const auto list, state.Ints("list"));
    if (slots != used_.size()) {
      return state.DoesNotFit(absl::StrCat("slots of an epoch: got ", slots,
                                           ", want ", used_.size()));
    }
    const bool is_listed = order != 0;
    const bool is_ordered = order == 2;
    if (order < 0 || order > 2 || (!is_listed && !list.empty())) {
      return state.Damaged(absl::StrCat("order: got ", order,
                                        ", want 1 or 2 with a list, else 0"));
    }
    RILL_RETURN_IF_ERROR(CheckList(state, list, is_ordered));
    const int64_t turns = is_listed ? static_cast<int64_t>(list.size()) : slots;
    if (place < 0 || place > turns) {
      return state.Damaged(absl::StrCat("place in the epoch: got ", place,
                                        ", want [0, ", turns, "]"));
    }
    epoch_ = static_cast<uint64_t>(epoch);
    place_ = place;
    is_listed_ = is_listed;
    is_ordered_ = is_ordered;
    list_.assign(list.begin(), list.end());
    rest_.reset();
    if (options.changed.Has("shuffle")) Restart();
    return absl::OkStatus();
  }

  const Selector::Epochs* epochs() const override { return this; }

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    used_.OnAttach(lanes, cursors);
    Restart();
    epoch_ = 0;
    TakeUpRest();
  }
  void OnWrite(const WriteEvent& event) override {
    if (!used_.OnWrite(event)) return;
    // A permutation of more slots is another one, so an epoch by it starts
    // anew.
    // A list would have to be made again: it goes on as it is.
    if (is_listed_ ? is_ordered_ : place_ > 0) Restart();
    TakeUpRest();
  }
  void OnClear() override {
    used_.OnClear();
    rest_.reset();
    if (place_ > 0 || is_listed_) Restart();
  }

 private:
  uint64_t LastEpoch() const override { return last_epoch_; }
  Sampler::EpochRest RestOfEpoch(const Request& request,
                                 const Anchors& anchors) const override {
    const auto plans_of = [&](int64_t items) {
      return items / request.count +
             (!options_.drop_last && items % request.count != 0 ? 1 : 0);
    };
    const int64_t left = plans_of(ItemsLeft(request, anchors));
    // The rest may be less than a batch, or no items any more.
    if (left > 0) return {.epoch = epoch_, .plans = left};
    return {.epoch = epoch_ + 1, .plans = plans_of(anchors.size())};
  }

  void Restart() {
    ++epoch_;
    place_ = 0;
    is_listed_ = is_ordered_ = false;
    list_.clear();
  }

  void TakeUpRest() {
    if (!rest_.has_value() || rest_->num_slots != used_.size()) return;
    is_listed_ = is_ordered_ = true;
    absl::flat_hash_set<Slot> seen;
    // The list is the caller's: slots that never held a row, and repeats, are
    // left out.
    for (const Slot slot : rest_->slots) {
      if (IsUsed(slot) && seen.insert(slot).second) list_.push_back(slot);
    }
  }

  bool IsUsed(Slot slot) const {
    return slot >= 0 && slot < used_.lanes().num_slots() &&
           used_.Contains({.first = slot, .count = 1});
  }

  void Begin(const Anchors& anchors) {
    is_listed_ = anchors.size() <= used_.size() / 2;
    if (!is_listed_) return;
    for (int64_t n = 0; n < anchors.size(); ++n) list_.push_back(anchors.At(n));
    // Ascending, so that the epoch depends on which anchors there are, and not
    // on the order in which the unit numbers them.
    std::sort(list_.begin(), list_.end());
  }

  // The slot whose turn it is at `place`; `order` is that of a shuffled epoch.
  Slot SlotOfTurn(int64_t place, bool is_shuffled,
                  const samplers_internal::KeyedPermutation& order) const {
    const int64_t n = is_shuffled ? order.At(place) : place;
    return is_listed_ ? list_[n] : used_.At(n);
  }

  int64_t ItemsLeft(const Request& request, const Anchors& anchors) const {
    // The two cases without a walk: nothing was taken, or every turn has an
    // item.
    if (place_ == 0 && !is_listed_) return anchors.size();
    const int64_t turns =
        is_listed_ ? static_cast<int64_t>(list_.size()) : used_.size();
    if (!is_listed_ && anchors.size() == turns) return turns - place_;
    const bool is_shuffled = options_.shuffle && !is_ordered_;
    // Not order_, which the next Take goes on with.
    samplers_internal::KeyedPermutation order;
    if (is_shuffled) order.Set(request.seed, NumberOf(request), turns);
    int64_t items = 0;
    for (int64_t place = place_; place < turns; ++place) {
      if (anchors.Contains(SlotOfTurn(place, is_shuffled, order))) ++items;
    }
    return items;
  }

  // Part of the reproducibility contract.
  uint64_t NumberOf(const Request& request) const {
    return epoch_ + (request.part << 40);
  }

  // Takes the next anchors of this epoch, and goes to the next one behind the
  // last turn.
  void Take(const Request& request, const Anchors& anchors,
            std::vector<Draw>* draws) {
    rest_.reset();
    if (place_ == 0 && !is_listed_) Begin(anchors);
    const int64_t turns =
        is_listed_ ? static_cast<int64_t>(list_.size()) : used_.size();
    last_epoch_ = epoch_;
    const bool is_shuffled = options_.shuffle && !is_ordered_;
    if (is_shuffled) order_.Set(request.seed, NumberOf(request), turns);
    int64_t wanted = request.count;
    for (; place_ < turns && wanted > 0; ++place_) {
      const Slot slot = SlotOfTurn(place_, is_shuffled, order_);
      if (!anchors.Contains(slot)) continue;
      draws->push_back({.slot = slot});
      --wanted;
    }
    if (place_ == turns) Restart();
  }

  absl::Status CheckList(const SavedState& state, absl::Span<const Slot> list,
                         bool is_ordered) const {
    absl::flat_hash_set<Slot> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const Slot slot = list[i];
      const bool is_next =
          is_ordered ? seen.insert(slot).second : i == 0 || slot > list[i - 1];
      if (!IsUsed(slot) || !is_next) {
        return state.Damaged(
            absl::StrCat("slot ", i, " of the epoch: got ", slot,
                         ", want one that has held a row, ",
                         is_ordered ? "once" : "above the one before"));
      }
    }
    return absl::OkStatus();
  }

  const WithoutReplacementOptions options_;
  samplers_internal::UsedSlots used_;  // An epoch's, where it has no list.
  uint64_t epoch_ = 0;
  uint64_t last_epoch_ = 0;  // Of the last Select.
  int64_t place_ = 0;
  // The anchors at the epoch's beginning, ascending, where they were few, or
  // what rest_ names, in its own order.
  bool is_listed_ = false;
  bool is_ordered_ = false;
  std::vector<Slot> list_;
  // Until the first plan.
  std::optional<WithoutReplacementOptions::Rest> rest_;
  samplers_internal::KeyedPermutation order_;
};

}  // namespace

std::unique_ptr<Selector> MakeWithoutReplacementSelector(
    const WithoutReplacementOptions& options) {
  return std::make_unique<WithoutReplacementSelector>(options);
}

std::unique_ptr<Sampler> MakeSamplerWithoutReplacement(
    const WithoutReplacementOptions& options) {
  return *MakeSampler(MakeWithoutReplacementSelector(options),
                      MakeTransitionUnit(), "SamplerWithoutReplacement");
}

}  // namespace rill
