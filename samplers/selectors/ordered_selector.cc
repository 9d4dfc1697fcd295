// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/ordered_selector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/selectors/slot_array_state.h"
#include "rill/samplers/selectors/slot_heap.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/slot_array.h"

namespace rill {
namespace {

using samplers_internal::LiveRows;

enum class Order { kFifo, kLifo, kMinHeap, kMaxHeap };

bool IsByAge(Order order) {
  return order == Order::kFifo || order == Order::kLifo;
}

absl::string_view NameOf(Order order) {
  switch (order) {
    case Order::kFifo:
      return "Fifo";
    case Order::kLifo:
      return "Lifo";
    case Order::kMinHeap:
      return "MinHeap";
    case Order::kMaxHeap:
      return "MaxHeap";
  }
  return "";
}

SelectorTraits TraitsOf(Order order, double new_priority) {
  SelectorTraits traits = {.name = std::string(NameOf(order))};
  if (!IsByAge(order)) traits.options.Double("new_priority", new_priority);
  return traits;
}

// All four orders are one heap of the anchors by a key: the number of the step
// that wrote the row, or its priority, negated where the largest comes first.
// Every row has its key, as a row may become an anchor long after its write.
class OrderedSelector final : public Selector {
 public:
  OrderedSelector(Order order, double new_priority)
      : Selector(TraitsOf(order, new_priority)),
        order_(order),
        new_priority_(new_priority) {}

  absl::Status Prepare(const Request& /*request*/,
                       const Anchors& /*anchors*/) override {
    if (heap_.size() > 0) return absl::OkStatus();
    return FailedPrecondition("items: got 0, want >= 1; write more rows first");
  }

  void Select(const Request& request, const Anchors& /*anchors*/,
              std::vector<Draw>* draws) override {
    first_.clear();
    heap_.First(request.count, &first_);
    for (int64_t i = 0; i < request.count; ++i) {
      // A batch that is larger than the anchors begins again with the first.
      draws->push_back({.slot = first_[i % first_.size()]});
    }
  }

  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const LiveRows& rows) override {
    if (is_by_age()) return;
    for (size_t i = 0; i < draws.size(); ++i) {
      // A priority of a row that is gone must not go to the row that came after
      // it.
      if (!rows.IsCurrent(draws[i])) continue;
      SetKey(draws[i].slot, Key(priorities[i]));
    }
  }

  absl::Status SaveState(SavedState* state) const override {
    state->Set("steps", steps_);
    state->SetPart("keys", samplers_internal::SaveSlotArray(keys_));
    return absl::OkStatus();
  }

  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& /*options*/) override {
    RILL_ASSIGN_OR_RETURN(const auto steps, state.Get<int64_t>("steps"));
    if (steps < 0 || steps > kMaxWritten) {
      return state.Damaged(
          absl::StrCat("steps: got ", steps, ", want [0, ", kMaxWritten, "]"));
    }
    RILL_ASSIGN_OR_RETURN(auto keys, samplers_internal::LoadSlotArray<double>(
                                         used_, state, "keys"));
    // Keys by age are whole steps that were counted. Any finite key is a
    // priority.
    for (Slot slot = is_by_age() ? keys.NextValue(0) : keys.num_slots();
         slot < keys.num_slots(); slot = keys.NextValue(slot + 1)) {
      const double step = Key(keys.Get(slot));
      if (step >= 0 && step <= static_cast<double>(steps) &&
          step == std::floor(step)) {
        continue;
      }
      return state.Damaged(absl::StrCat("step of slot ", slot, ": got ", step,
                                        ", want a whole number in [0, ", steps,
                                        "]"));
    }
    steps_ = steps;
    keys_ = std::move(keys);
    // The order of the heap is a function of the keys, so only they are saved.
    std::vector<Slot> members;
    heap_.First(heap_.size(), &members);
    heap_.Clear();
    for (const Slot slot : members) heap_.Put(slot, keys_.Get(slot));
    return absl::OkStatus();
  }

  ValuesRead values_read() const override {
    if (is_by_age()) return ValuesRead::None();
    return {.trajectories = false, .policy_versions = false};
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    lanes_ = lanes;
    used_.OnAttach(lanes, cursors);
    keys_.Reset(lanes.num_slots());
    heap_.Reset(lanes.num_slots());
    steps_ = 0;
  }
  void OnWrite(const WriteEvent& event) override {
    used_.OnWrite(event);
    if (is_by_age()) {
      if (event.is_append || event.is_replacement) SetAges(event);
    } else {
      SetPriorities(event);
    }
  }
  void OnClear() override {
    used_.OnClear();
    keys_.Reset(keys_.num_slots());
  }

  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) { heap_.Put(slot, keys_.Get(slot)); });
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) { heap_.Remove(slot); });
  }
  void OnAnchorsCleared() override { heap_.Clear(); }

 private:
  bool is_by_age() const { return IsByAge(order_); }
  // The first anchor has the lowest key. Never -0.
  double Key(double value) const {
    const bool is_reversed =
        order_ == Order::kLifo || order_ == Order::kMaxHeap;
    return is_reversed ? 0.0 - value : 0.0 + value;
  }

  void SetKey(Slot slot, double key) {
    keys_.At(slot) = key;
    if (heap_.Contains(slot)) heap_.Put(slot, key);
  }

  // Steps are numbered from 1 over all appends; doubles hold 2^53 of them.
  void SetAges(const WriteEvent& event) {
    int64_t lane = -1;
    int64_t step = 0;  // In its lane.
    int64_t most = 0;
    for (const SlotRange& range : event.written) {
      // Rows of one time step in several lanes get the same number.
      if (lanes_.LaneOf(range.first) != lane) {
        lane = lanes_.LaneOf(range.first);
        step = 0;
      }
      for (int64_t i = 0; i < range.count; ++i) {
        SetKey(range.first + i, Key(static_cast<double>(steps_ + ++step)));
      }
      most = std::max(most, step);
    }
    steps_ += most;
  }

  void SetPriorities(const WriteEvent& event) {
    const bool is_new = event.is_append || event.is_replacement;
    // A part of a row that is written in place leaves the row's priority.
    if (!is_new && event.priorities.empty()) return;
    size_t row = 0;
    ForEachSlot(event.written, [&](Slot slot) {
      const double priority =
          event.priorities.empty() ? new_priority_ : event.priorities[row];
      SetKey(slot, Key(std::isfinite(priority) ? priority : new_priority_));
      ++row;
    });
  }

  const Order order_;
  const double new_priority_;
  Lanes lanes_;
  samplers_internal::UsedSlots used_;
  SlotArray<double> keys_;  // Of every row, whether it is an anchor or not.
  samplers_internal::SlotHeap heap_;  // The anchors.
  int64_t steps_ = 0;                 // That were ever appended.
  std::vector<Slot> first_;           // Those of one batch.
};

absl::StatusOr<std::unique_ptr<Selector>> MakeHeap(
    Order order, absl::string_view function,
    const HeapSelectorOptions& options) {
  if (!std::isfinite(options.new_priority)) {
    return InvalidArgument(function, ": new_priority: got ",
                           options.new_priority, ", want a finite one");
  }
  return std::make_unique<OrderedSelector>(order, options.new_priority);
}

}  // namespace

std::unique_ptr<Selector> MakeFifoSelector() {
  return std::make_unique<OrderedSelector>(Order::kFifo, 0);
}

std::unique_ptr<Selector> MakeLifoSelector() {
  return std::make_unique<OrderedSelector>(Order::kLifo, 0);
}

absl::StatusOr<std::unique_ptr<Selector>> MakeMinHeapSelector(
    const HeapSelectorOptions& options) {
  return MakeHeap(Order::kMinHeap, "MakeMinHeapSelector", options);
}

absl::StatusOr<std::unique_ptr<Selector>> MakeMaxHeapSelector(
    const HeapSelectorOptions& options) {
  return MakeHeap(Order::kMaxHeap, "MakeMaxHeapSelector", options);
}

}  // namespace rill
