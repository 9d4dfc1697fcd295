// SPDX-License-Identifier: Apache-2.0
// The host keeps which rows there are; the device their priorities. An event
// becomes changes of slots, which wait in a queue (queued_priorities.h). Only
// the device knows the largest priority so far, so that a row without one is a
// change that says so.
#include "rill/samplers/prioritized/device_selector.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/priorities/device_priorities.h"
#include "rill/samplers/prioritized/priority_state.h"
#include "rill/samplers/prioritized/queued_priorities.h"
#include "rill/samplers/prioritized/row_priorities.h"
#include "rill/samplers/prioritized/selector_values.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/generations.h"

namespace rill::samplers_internal {
namespace {

using Change = DevicePriorities::Change;

class DeviceSelector final : public PrioritizedSelector {
 public:
  DeviceSelector(const PrioritizedOptions& options,
                 std::shared_ptr<QueuedPriorities> queue)
      : PrioritizedSelector(
            PrioritizedTraits(options, queue, /*mass=*/nullptr)),
        options_(options),
        alpha_(options.alpha),
        beta_(options.beta),
        queue_(std::move(queue)) {}

  absl::Status Prepare(const Request& request, const Anchors& anchors) override;
  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override;
  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const LiveRows& rows) override;

  absl::Status SetAlpha(double alpha) override {
    RILL_RETURN_IF_ERROR(CheckExponent("SetAlpha", "alpha", alpha));
    alpha_ = alpha;
    return absl::OkStatus();
  }
  absl::Status SetBeta(double beta) override {
    RILL_RETURN_IF_ERROR(CheckExponent("SetBeta", "beta", beta));
    beta_ = beta;
    return absl::OkStatus();
  }
  double alpha() const override { return alpha_; }
  double beta() const override { return beta_; }
  double epsilon() const override { return options_.epsilon; }
  std::vector<float> Priorities() const override;
  float DefaultPriority() const override;
  absl::StatusOr<Refused> RefusedPriorities() const override;

  absl::Status SaveState(SavedState* state) const override;
  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override;

  ValuesRead values_read() const override {
    return {.trajectories = false, .policy_versions = false};
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    Turn(slots, Change::kOn);
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    Turn(slots, 0);
  }
  void OnAnchorsCleared() override { queue_->TurnAllOff(); }

 private:
  void Turn(absl::Span<const SlotRange> slots, uint32_t on);
  // Rows of slots that were written have these generations.
  void Restore(const Generations& generations);
  // Change::generation of the row that a slot has now.
  int64_t GenerationOf(Slot slot) const {
    return std::max<int64_t>(generations_.Get(slot), -1) + 1;
  }

  const PrioritizedOptions options_;
  std::atomic<double> alpha_, beta_;
  UsedSlots used_;
  Generations generations_;
  const std::shared_ptr<QueuedPriorities> queue_;
  DevicePriorities::Drawn drawn_;  // Of the last Prepare.
  std::vector<Change> changes_;    // Memory of calls.
};

// --- Draws and updates -------------------------------------------------------

absl::Status DeviceSelector::Prepare(const Request& request,
                                     const Anchors& anchors) {
  // The draws themselves: only this call may fail.
  RILL_ASSIGN_OR_RETURN(
      drawn_, queue_->Draw({.seed = request.seed,
                            .batch = request.batch_number,
                            .first = static_cast<uint32_t>(request.first_draw),
                            .count = request.count,
                            .beta = beta(),
                            .stratified = options_.stratified},
                           alpha()));
  if (drawn_.total > 0) return absl::OkStatus();
  return NothingToDraw(anchors.size());
}

void DeviceSelector::Select(const Request& /*request*/,
                            const Anchors& /*anchors*/,
                            std::vector<Draw>* draws) {
  draws->reserve(draws->size() + drawn_.slots.size());
  for (size_t i = 0; i < drawn_.slots.size(); ++i) {
    draws->push_back(
        {.slot = drawn_.slots[i], .weight = drawn_.importances[i]});
  }
}

void DeviceSelector::UpdatePriorities(absl::Span<const Draw> draws,
                                      absl::Span<const float> priorities,
                                      const LiveRows& rows) {
  changes_.clear();
  std::optional<float> largest;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (!rows.IsCurrent(draws[i])) continue;
    changes_.push_back({.slot = draws[i].slot,
                        .bits = RowPriorities::WordOf(priorities[i]),
                        .sets = Change::kPriority});
    largest = std::max(largest.value_or(0.0f), priorities[i]);
  }
  if (!changes_.empty()) queue_->Add(changes_, largest);
}

// --- Events ------------------------------------------------------------------

void DeviceSelector::OnAttach(const Lanes& lanes,
                              absl::Span<const Cursor> cursors) {
  used_.OnAttach(lanes, cursors);
  generations_.OnAttach(lanes, cursors);
  queue_->Reset(lanes.num_slots());
}

void DeviceSelector::OnClear() {
  used_.OnClear();
  generations_.OnClear();
  queue_->Reset(used_.lanes().num_slots());
}

// A row that is gone has no priority, so that equal rows have equal states. One
// that is written in place is drawn until it is written.
void DeviceSelector::OnRetire(const WriteEvent& event) {
  queue_->FlushIfFull();
  generations_.OnRetire(event);
  if (event.is_patch || event.retired.empty()) return;
  uint32_t sets = Change::kGeneration;
  if (event.is_append) sets |= Change::kPriority | Change::kState;
  changes_.clear();
  ForEachSlot(event.retired, [&](Slot slot) {
    changes_.push_back({.slot = slot, .sets = sets});
  });
  queue_->Add(changes_);
}

void DeviceSelector::OnWrite(const WriteEvent& event) {
  if (event.retired.empty()) queue_->FlushIfFull();
  used_.OnWrite(event);
  generations_.OnWrite(event);
  const bool is_new = event.is_append || event.is_replacement;
  const bool takes_given = options_.new_rows == NewRowPriority::kGiven;
  uint32_t sets = event.is_patch ? 0 : uint32_t{Change::kGeneration};
  if (event.is_append) sets |= Change::kState;
  if (is_new || (takes_given && !event.priorities.empty())) {
    sets |= Change::kPriority;
  }
  if (sets == 0 && event.priorities.empty()) return;
  // Of a row that comes without a priority.
  Change unknown = {.sets = sets};
  if (options_.new_rows == NewRowPriority::kConstant) {
    unknown.bits = RowPriorities::WordOf(options_.new_row_priority);
  } else {
    unknown.sets |= Change::kLargest;
  }
  changes_.clear();
  std::optional<float> largest;
  int64_t row = 0;
  ForEachSlot(event.written, [&](Slot slot) {
    const std::optional<float> given = GivenPriority(event, row++);
    if (given.has_value()) largest = std::max(largest.value_or(0.0f), *given);
    if (sets == 0) return;
    Change change = unknown;
    if (given.has_value() && takes_given) {
      change = {.bits = RowPriorities::WordOf(*given), .sets = sets};
    }
    change.slot = slot;
    change.generation = GenerationOf(slot);
    changes_.push_back(change);
  });
  queue_->Add(changes_, largest);
}

void DeviceSelector::Turn(absl::Span<const SlotRange> slots, uint32_t on) {
  changes_.clear();
  ForEachSlot(slots, [&](Slot slot) {
    changes_.push_back({.slot = slot, .sets = Change::kState | on});
  });
  if (!changes_.empty()) queue_->Add(changes_);
}

// --- Contents and state ------------------------------------------------------

std::vector<float> DeviceSelector::Priorities() const {
  absl::StatusOr<DevicePriorities::Contents> contents = queue_->Read();
  if (!contents.ok()) return {};
  return std::move(contents->priorities);
}

float DeviceSelector::DefaultPriority() const {
  if (options_.new_rows == NewRowPriority::kConstant) {
    return options_.new_row_priority;
  }
  const absl::StatusOr<DevicePriorities::Contents> contents = queue_->Read();
  return contents.ok() ? contents->largest.value_or(1.0f) : 1.0f;
}

absl::StatusOr<PrioritizedSelector::Refused> DeviceSelector::RefusedPriorities()
    const {
  RILL_ASSIGN_OR_RETURN(const DevicePriorities::Bad bad, queue_->ReadBad());
  return Refused{.count = bad.count,
                 .first_slot = bad.first_slot,
                 .first = bad.first_priority};
}

absl::Status DeviceSelector::SaveState(SavedState* state) const {
  RILL_ASSIGN_OR_RETURN(const DevicePriorities::Contents contents,
                        queue_->Read());
  RowPriorities rows(used_.lanes());
  const Slot end = used_.lanes().num_slots();
  for (Slot slot = used_.Next(0); slot < end; slot = used_.Next(slot + 1)) {
    rows.Set(slot, contents.priorities[slot]);
  }
  PriorityValues{.alpha = alpha(), .beta = beta(), .largest = contents.largest}
      .Save(state);
  SavePriorities(rows, used_, state);
  return absl::OkStatus();
}

void DeviceSelector::Restore(const Generations& generations) {
  for (Slot slot = generations.NextWritten(0); slot < generations.num_slots();
       slot = generations.NextWritten(slot + 1)) {
    generations_.Restore({.first = slot, .count = 1}, generations.Get(slot));
  }
}

absl::Status DeviceSelector::LoadState(const SavedState& state,
                                       const LoadOptions& options) {
  RILL_ASSIGN_OR_RETURN(const PriorityValues values,
                        PriorityValues::Read(state));
  changes_.clear();
  const auto add = [&](Slot slot, float priority) {
    changes_.push_back({.slot = slot,
                        .generation = GenerationOf(slot),
                        .bits = RowPriorities::WordOf(priority),
                        .sets = Change::kPriority | Change::kGeneration});
  };
  if (options.moved == nullptr) {
    RowPriorities rows(used_.lanes());
    RILL_RETURN_IF_ERROR(LoadPriorities(state, used_, &rows));
    const Slot end = used_.lanes().num_slots();
    if (options.generations != nullptr) Restore(*options.generations);
    for (Slot slot = used_.Next(0); slot < end; slot = used_.Next(slot + 1)) {
      add(slot, rows.Get(slot));
    }
  } else {
    RILL_RETURN_IF_ERROR(LoadMovedPriorities(state, *options.moved,
                                             [&](Slot slot, float priority) {
                                               if (options.rows->IsLive(slot))
                                                 add(slot, priority);
                                             }));
  }
  RILL_RETURN_IF_ERROR(queue_->Load(changes_, values.largest));
  beta_ = options.changed.Has("beta") ? options_.beta : values.beta;
  alpha_ = options.changed.Has("alpha") ? options_.alpha : values.alpha;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrioritizedSelector>> MakeDeviceSelector(
    const PrioritizedOptions& options) {
  if (options.new_rows == NewRowPriority::kMaxInBuffer) {
    return InvalidArgument(
        "PrioritizedSelector::Create: new_rows: got kMaxInBuffer with "
        "priorities on ",
        options.device.ToString(), ", want another rule, or device = the CPU");
  }
  RILL_RETURN_IF_ERROR(GetBackend(options.device).status());
  return std::make_unique<DeviceSelector>(
      options,
      std::make_shared<QueuedPriorities>(options.device, options.epsilon));
}

}  // namespace rill::samplers_internal
