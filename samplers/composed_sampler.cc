// SPDX-License-Identifier: Apache-2.0
// The two halves of a sampler behind one mutex. Plan lets both check first, so
// that nothing fails once the plan changes. Then the selector picks anchors,
// the unit makes rows of them, and the generations of both are set. Events go
// to the rows, the selector and the unit in the order that selector.h promises.
#include "rill/samplers/composed_sampler.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/rng.h"
#include "rill/base/spin_then_block_lock.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/arguments.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/old_state.h"
#include "rill/slots/generations.h"

namespace rill {
namespace {

using samplers_internal::ChangedOptions;
using samplers_internal::FromOldState;
using samplers_internal::IsOldState;
using samplers_internal::KindIn;
using samplers_internal::LiveRows;
using samplers_internal::StateOf;

// Version 1 had numbers without names (old_state.h).
constexpr int64_t kStateVersion = 2;
// Keeps the unit's random numbers apart from the selector's. Part of the
// reproducibility contract.
constexpr uint16_t kUnitSubstream = 1;

// Parts of the state, and what names of options begin with.
constexpr absl::string_view kSelector = "selector";
constexpr absl::string_view kUnit = "unit";

SamplerTraits TraitsOf(const Selector& selector, const SampleUnit& unit,
                       absl::string_view name) {
  OptionValues options;
  options.Part(kSelector, selector.name(), selector.traits().options);
  options.Part(kUnit, unit.rows->name(), unit.rows->traits().options);
  return {.name = std::string(name),
          .options = std::move(options),
          .is_weighted = selector.traits().is_weighted,
          .needs_order =
              !unit.rows->traits().is_row || selector.traits().needs_order,
          .has_epochs = selector.epochs() != nullptr,
          .may_be_short = selector.traits().may_be_short,
          .loads_moved_rows = true,
          .loads_changed_options = true,
          .layout = unit.rows->traits().layout,
          .arithmetic = unit.arithmetic,
          .priority_updater = selector.traits().priority_updater,
          .priority_mass = selector.traits().priority_mass};
}

// The table in composed_sampler.h.
absl::Status CheckFit(const SelectorTraits& selector, const UnitTraits& unit) {
  if (!unit.picks_by_rule || selector.picks_by_unit) return absl::OkStatus();
  return InvalidArgument(
      "MakeSampler: selector: got ", selector.name, ", which picks ",
      "anchors itself, want one that leaves it to the unit, as uniform does, "
      "where ",
      unit.name, " has a rule of its own for that (starts)");
}

class ComposedSampler final : public Sampler {
 public:
  ComposedSampler(std::unique_ptr<Selector> selector, SampleUnit unit,
                  absl::string_view name)
      : Sampler(TraitsOf(*selector, unit, name)),
        epochs_(selector->epochs()),
        used_up_(unit.rows->traits().is_row ? selector->used_up() : nullptr),
        selector_(std::move(selector)),
        unit_(std::move(unit.rows)) {
    if (selector_->traits().needs_anchor_events) {
      unit_->SetListener(selector_.get());
    }
  }

  int64_t AddUsedUp(int64_t most, std::vector<Slot>* slots) const override {
    SpinThenBlockLock lock(&mutex_);
    // A slice's first row may be used up while others still need it.
    return used_up_ == nullptr ? 0 : used_up_->AddUsedUp(most, slots);
  }

  absl::Status Plan(const Request& request, SamplePlan* plan) override;
  absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                absl::Span<const float> priorities) override;
  void FindCurrent(absl::Span<const Draw> draws,
                   absl::Span<uint8_t> is_current) const override;
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override;
  absl::StatusOr<EpochRest> RestOfEpoch(const Request& request) const override;
  absl::StatusOr<std::string> SaveState() const override;

  // Those of a part never change.
  ValuesRead values_read() const override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return selector_->values_read() | unit_->values_read();
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  absl::Status DoLoadState(absl::string_view state,
                           const LoadOptions& options) override;

  absl::StatusOr<Selector::Request> Prepare(const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<SavedState> SaveAll() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadParts(const SavedState& state,
                         const Generations& generations,
                         const ChangedOptions& changed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadMoved(const SavedState& state, const MovedRows& moved,
                         const ChangedOptions& changed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  // The selector's, null where it has none. Slots that are used up are none
  // where an item is more than a row.
  const Selector::Epochs* const epochs_ ABSL_PT_GUARDED_BY(mutex_);
  const Selector::UsedUp* const used_up_ ABSL_PT_GUARDED_BY(mutex_);
  LiveRows rows_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<Selector> selector_ ABSL_PT_GUARDED_BY(mutex_);
  const std::unique_ptr<Unit> unit_ ABSL_PT_GUARDED_BY(mutex_);
};

absl::StatusOr<Selector::Request> ComposedSampler::Prepare(
    const Request& request) {
  RILL_ASSIGN_OR_RETURN(const int64_t count,
                        unit_->NumAnchors(request.batch_size));
  // The unit before the selector: its error says why there is no anchor, and a
  // selector may suppose that there is one.
  RILL_RETURN_IF_ERROR(unit_->CheckAnchors());
  const Selector::Request select = {.count = count,
                                    .seed = request.seed,
                                    .batch_number = request.batch_number};
  RILL_RETURN_IF_ERROR(selector_->Prepare(select, unit_->anchors()));
  return select;
}

absl::Status ComposedSampler::Plan(const Request& request, SamplePlan* plan) {
  RILL_RETURN_IF_ERROR(samplers_internal::CheckBatchSize(
      name(), request.batch_size, kMaxBatchSize));
  SpinThenBlockLock lock(&mutex_);
  const absl::StatusOr<Selector::Request> select = Prepare(request);
  if (!select.ok()) {
    return absl::Status(
        select.status().code(),
        absl::StrCat(name(), "::Plan: ", select.status().message()));
  }
  // Nothing fails from here on.
  plan->Clear();
  selector_->Select(*select, unit_->anchors(), &plan->draws);
  rows_.SetGenerations(absl::MakeSpan(plan->draws));
  plan->context.resize(traits().layout.context.size());
  unit_->Expand(Rng(request.seed, RngStream::kSampler, kUnitSubstream),
                request.batch_number, plan);
  // Draws and rows get generations of one moment, since no write is published
  // while the mutex is held.
  plan->generations.resize(plan->rows.size());
  rows_.GenerationsOf(plan->rows, plan->generations.data());
  if (epochs_ != nullptr) plan->epoch = epochs_->LastEpoch();
  return absl::OkStatus();
}

absl::Status ComposedSampler::UpdatePriorities(
    absl::Span<const Draw> draws, absl::Span<const float> priorities) {
  RILL_RETURN_IF_ERROR(
      samplers_internal::CheckPriorities(name(), draws, priorities));
  SpinThenBlockLock lock(&mutex_);
  selector_->UpdatePriorities(draws, priorities, rows_);
  return absl::OkStatus();
}

void ComposedSampler::FindCurrent(absl::Span<const Draw> draws,
                                  absl::Span<uint8_t> is_current) const {
  SpinThenBlockLock lock(&mutex_);
  for (size_t i = 0; i < draws.size(); ++i) {
    is_current[i] = rows_.IsCurrent(draws[i]) ? 1 : 0;
  }
}

void ComposedSampler::GetGenerations(absl::Span<const Slot> slots,
                                     absl::Span<int64_t> generations) const {
  SpinThenBlockLock lock(&mutex_);
  rows_.GetGenerations(slots, generations.data());
}

absl::StatusOr<Sampler::EpochRest> ComposedSampler::RestOfEpoch(
    const Request& request) const {
  if (epochs_ == nullptr) return Sampler::RestOfEpoch(request);
  RILL_RETURN_IF_ERROR(samplers_internal::CheckBatchSize(
      name(), request.batch_size, kMaxBatchSize));
  SpinThenBlockLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(const int64_t count,
                        unit_->NumAnchors(request.batch_size));
  return epochs_->RestOfEpoch({.count = count,
                               .seed = request.seed,
                               .batch_number = request.batch_number},
                              unit_->anchors());
}

// --- State -------------------------------------------------------------------

absl::StatusOr<SavedState> ComposedSampler::SaveAll() const {
  SavedState state(name(), kStateVersion);
  rows_.Save(&state);
  SavedState unit(unit_->name(), Unit::kStateVersion);
  unit_->SaveState(&unit);
  state.SetPart(kUnit, std::move(unit));
  RILL_ASSIGN_OR_RETURN(SavedState selector, StateOf(*selector_));
  state.SetPart(kSelector, std::move(selector));
  return state;
}

absl::Status ComposedSampler::LoadParts(const SavedState& state,
                                        const Generations& generations,
                                        const ChangedOptions& changed) {
  RILL_ASSIGN_OR_RETURN(const SavedState* const unit,
                        state.Part(kUnit, unit_->name(), Unit::kStateVersion));
  RILL_ASSIGN_OR_RETURN(
      const SavedState* const selector,
      state.Part(kSelector, selector_->name(), Selector::kStateVersion));
  RILL_RETURN_IF_ERROR(unit_->LoadState(*unit, changed.In(kUnit)));
  return selector_->LoadState(*selector, {.generations = &generations,
                                          .changed = changed.In(kSelector)});
}

absl::StatusOr<std::string> ComposedSampler::SaveState() const {
  SavedState state;
  {
    SpinThenBlockLock lock(&mutex_);
    RILL_ASSIGN_OR_RETURN(state, SaveAll());
  }
  return state.Encode();
}

absl::Status ComposedSampler::DoLoadState(absl::string_view bytes,
                                          const LoadOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const SavedState state,
      IsOldState(bytes) ? FromOldState(bytes,
                                       [this](absl::string_view part) {
                                         return KindIn(traits().options, part);
                                       })
                        : SavedState::Decode(bytes));
  RILL_RETURN_IF_ERROR(state.CheckType(name(), kStateVersion));
  const ChangedOptions changed(options.changed);
  SpinThenBlockLock lock(&mutex_);
  if (options.moved != nullptr)
    return LoadMoved(state, *options.moved, changed);
  // Read first and restored last: the generations cannot be taken back once the
  // parts have been loaded.
  RILL_ASSIGN_OR_RETURN(Generations generations, rows_.Load(state));
  // A part that loaded before another one failed takes back what it was.
  RILL_ASSIGN_OR_RETURN(const SavedState before, SaveAll());
  if (absl::Status status = LoadParts(state, generations, changed);
      !status.ok()) {
    // It has just been saved.
    LoadParts(before, rows_.generations(), {}).IgnoreError();
    return status;
  }
  rows_.Restore(std::move(generations));
  return absl::OkStatus();
}

absl::Status ComposedSampler::LoadMoved(const SavedState& state,
                                        const MovedRows& moved,
                                        const ChangedOptions& changed) {
  // Generations and the unit's state name slots of the old lanes. Only the
  // selector's values can follow their rows.
  RILL_RETURN_IF_ERROR(LiveRows::CheckLanes(state, moved.from));
  if (!selector_->traits().loads_moved_rows) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(
      const SavedState* const selector,
      state.Part(kSelector, selector_->name(), Selector::kStateVersion));
  return selector_->LoadState(
      *selector,
      {.moved = &moved, .rows = &rows_, .changed = changed.In(kSelector)});
}

// --- Events: the order that selector.h promises ------------------------------

void ComposedSampler::OnAttach(const Lanes& lanes,
                               absl::Span<const Cursor> cursors) {
  SpinThenBlockLock lock(&mutex_);
  rows_.OnAttach(lanes, cursors);
  selector_->OnAttach(lanes, cursors);
  unit_->OnAttach(lanes, cursors);
}

void ComposedSampler::OnRetire(const WriteEvent& event) {
  SpinThenBlockLock lock(&mutex_);
  rows_.OnRetire(event);
  selector_->OnRetire(event);
  unit_->OnRetire(event);
}

void ComposedSampler::OnWrite(const WriteEvent& event) {
  SpinThenBlockLock lock(&mutex_);
  rows_.OnWrite(event);
  selector_->OnWrite(event);
  unit_->OnWrite(event);
}

void ComposedSampler::OnClear() {
  SpinThenBlockLock lock(&mutex_);
  rows_.OnClear();
  unit_->OnClear();
  selector_->OnClear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(
    std::unique_ptr<Selector> selector, SampleUnit unit,
    absl::string_view name) {
  if (selector == nullptr || unit.rows == nullptr || name.empty()) {
    return InvalidArgument(
        "MakeSampler: ",
        selector == nullptr    ? "selector: got null, want a selector"
        : unit.rows == nullptr ? "unit: got null, want a unit"
                               : "name: got an empty one, want one");
  }
  RILL_RETURN_IF_ERROR(CheckFit(selector->traits(), unit.rows->traits()));
  return std::make_unique<ComposedSampler>(std::move(selector), std::move(unit),
                                           name);
}

}  // namespace rill
