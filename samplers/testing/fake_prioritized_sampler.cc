// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/testing/fake_prioritized_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/arguments.h"
#include "rill/samplers/live_rows.h"
#include "rill/slots/generations.h"

namespace rill {
namespace {

using samplers_internal::LiveRows;

constexpr int64_t kStateVersion = 1;

class FakePrioritizedSampler final : public Sampler {
 public:
  explicit FakePrioritizedSampler(const FakePrioritizedSamplerOptions& options)
      : Sampler({.name = "FakePrioritizedSampler", .is_weighted = true}),
        options_(options) {}

  absl::Status Plan(const Request& request, SamplePlan* plan) override;
  absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                absl::Span<const float> priorities) override;
  void FindCurrent(absl::Span<const Draw> draws,
                   absl::Span<uint8_t> is_current) const override;
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override {
    absl::MutexLock lock(&mutex_);
    state_.rows.GetGenerations(slots, generations.data());
  }
  absl::StatusOr<std::string> SaveState() const override;

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  struct State {
    LiveRows rows;
    std::vector<double> priorities;  // One a slot.
    double max_priority = 1.0;       // Ever given.
  };

  absl::Status DoLoadState(absl::string_view state,
                           const LoadOptions& options) override;

  double Mass(Slot slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const double priority = state_.priorities[slot];
    return priority > 0 ? std::pow(priority, options_.alpha) : 0;
  }

  const FakePrioritizedSamplerOptions options_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

absl::Status FakePrioritizedSampler::Plan(const Request& request,
                                          SamplePlan* plan) {
  RILL_RETURN_IF_ERROR(samplers_internal::CheckBatchSize(
      name(), request.batch_size, kMaxBatchSize));
  absl::MutexLock lock(&mutex_);
  const int64_t n = state_.rows.size();
  if (n == 0) {
    return FailedPrecondition(name(), "::Plan: live rows: got 0, want >= 1");
  }
  std::vector<double> ends(n);  // Of each row's share of [0, total).
  double total = 0;
  double smallest = 0;  // Mass above 0.
  for (int64_t i = 0; i < n; ++i) {
    const double mass = Mass(state_.rows.At(i).slot);
    if (mass > 0) smallest = smallest > 0 ? std::min(smallest, mass) : mass;
    ends[i] = total += mass;
  }
  if (total <= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), "::Plan: sum of the priorities of ", n,
                     " rows: got ", total, ", want > 0"));
  }
  plan->Clear();
  plan->context.clear();
  const Rng rng(request.seed, RngStream::kSampler);
  for (int64_t i = 0; i < request.batch_size; ++i) {
    const double point = total * rng.UniformDouble(request.batch_number,
                                                   static_cast<uint32_t>(i));
    int64_t row =
        std::upper_bound(ends.begin(), ends.end(), point) - ends.begin();
    // Rounding may put the point on the end: then the last row with a mass.
    if (row == n) {
      row = std::lower_bound(ends.begin(), ends.end(), total) - ends.begin();
    }
    Draw draw = state_.rows.At(row);
    draw.weight = static_cast<float>(
        std::pow(Mass(draw.slot) / smallest, -options_.beta));
    plan->draws.push_back(draw);
  }
  return absl::OkStatus();
}

void FakePrioritizedSampler::FindCurrent(absl::Span<const Draw> draws,
                                         absl::Span<uint8_t> is_current) const {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < draws.size(); ++i) {
    is_current[i] = state_.rows.IsCurrent(draws[i]) ? 1 : 0;
  }
}

absl::Status FakePrioritizedSampler::UpdatePriorities(
    absl::Span<const Draw> draws, absl::Span<const float> priorities) {
  RILL_RETURN_IF_ERROR(
      samplers_internal::CheckPriorities(name(), draws, priorities));
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < draws.size(); ++i) {
    if (!state_.rows.IsCurrent(draws[i])) continue;
    state_.priorities[draws[i].slot] = priorities[i];
    state_.max_priority = std::max<double>(state_.max_priority, priorities[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FakePrioritizedSampler::SaveState() const {
  SavedState state(name(), kStateVersion);
  absl::MutexLock lock(&mutex_);
  state_.rows.Save(&state);
  state.Set("priorities", state_.priorities);
  state.Set("max_priority", state_.max_priority);
  return state.Encode();
}

absl::Status FakePrioritizedSampler::DoLoadState(
    absl::string_view bytes, const LoadOptions& /*options*/) {
  RILL_ASSIGN_OR_RETURN(const SavedState state, SavedState::Decode(bytes));
  RILL_RETURN_IF_ERROR(state.CheckType(name(), kStateVersion));
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(Generations generations, state_.rows.Load(state));
  RILL_ASSIGN_OR_RETURN(const auto priorities, state.Doubles("priorities"));
  if (priorities.size() != state_.priorities.size()) {
    return state.DoesNotFit(absl::StrCat("priorities: got ", priorities.size(),
                                         ", want ", state_.priorities.size()));
  }
  RILL_ASSIGN_OR_RETURN(const auto max_priority,
                        state.Get<double>("max_priority"));
  state_.rows.Restore(std::move(generations));
  state_.priorities.assign(priorities.begin(), priorities.end());
  state_.max_priority = max_priority;
  return absl::OkStatus();
}

void FakePrioritizedSampler::OnAttach(const Lanes& lanes,
                                      absl::Span<const Cursor> cursors) {
  absl::MutexLock lock(&mutex_);
  state_.rows.OnAttach(lanes, cursors);
  state_.priorities.assign(lanes.num_slots(), 0);
}

void FakePrioritizedSampler::OnRetire(const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  state_.rows.OnRetire(event);
}

void FakePrioritizedSampler::OnWrite(const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  state_.rows.OnWrite(event);
  const bool is_new = event.is_append || event.is_replacement;
  if (!is_new && event.priorities.empty()) return;
  size_t i = 0;
  for (const SlotRange& range : event.written) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      state_.priorities[slot] =
          event.priorities.empty() ? state_.max_priority : event.priorities[i];
      ++i;
    }
  }
  for (double priority : event.priorities) {
    state_.max_priority = std::max(state_.max_priority, priority);
  }
}

void FakePrioritizedSampler::OnClear() {
  absl::MutexLock lock(&mutex_);
  state_.rows.OnClear();
}

}  // namespace

std::unique_ptr<Sampler> MakeFakePrioritizedSampler(
    const FakePrioritizedSamplerOptions& options) {
  return std::make_unique<FakePrioritizedSampler>(options);
}

}  // namespace rill
