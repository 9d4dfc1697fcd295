// SPDX-License-Identifier: Apache-2.0
// Two structures hold the priorities:
// - rows_ has each row's as it was given, whether the row is an anchor (is on),
//   and the extremes of those that are.
// - tree_ has (priority + epsilon) ^ alpha of rows that are on, and 0 for all
//   others.
//
// A change goes to rows_ at once and into a queue. FlushWeights raises the
// queue to alpha, many at a time, and sets the tree. Every call ends with an
// empty queue.
//
// The tree keeps the weights of rows that an append has retired until somebody
// looks (Settle). Mostly the append's own rows come first and have the same
// priorities, so the tree stays as it is: it is a function of its leaves.
#include "rill/samplers/prioritized/prioritized_selector.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/random_blocks.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/prioritized/device_selector.h"
#include "rill/samplers/prioritized/power.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/prioritized/priority_state.h"
#include "rill/samplers/prioritized/row_priorities.h"
#include "rill/samplers/prioritized/selector_values.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/samplers/sum_tree/sum_tree.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

using samplers_internal::ChangedOptions;
using samplers_internal::CheckExponent;
using samplers_internal::CheckOptionRange;
using samplers_internal::LiveRows;
using samplers_internal::Power;
using samplers_internal::PriorityValues;
using samplers_internal::RowPriorities;
using samplers_internal::SumTree;

constexpr double kMaxEpsilon = 1e30;
// Slots of a flush: enough for vectors and for loads that overlap, and few
// enough for the first cache.
constexpr size_t kChunk = 256;

class SelectorImpl final : public PrioritizedSelector {
 public:
  SelectorImpl(const PrioritizedOptions& options,
               std::shared_ptr<PriorityMassGauge> mass)
      : PrioritizedSelector(samplers_internal::PrioritizedTraits(
            options, /*updater=*/nullptr, mass)),
        options_(options),
        mass_(std::move(mass)),
        alpha_(options.alpha),
        beta_(options.beta),
        weighed_alpha_(options.alpha) {}

  absl::Status Prepare(const Request& request, const Anchors& anchors) override;
  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override;
  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const LiveRows& rows) override;

  absl::Status SetAlpha(double alpha) override;
  absl::Status SetBeta(double beta) override;
  double alpha() const override { return alpha_; }
  double beta() const override { return beta_; }
  double epsilon() const override { return options_.epsilon; }
  std::vector<float> Priorities() const override;
  float DefaultPriority() const override;

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
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override;
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override;
  void OnAnchorsCleared() override;

 private:
  // The number that is raised to alpha; 0 where the row is not drawn.
  double BaseOf(uint32_t word) const {
    return (word & RowPriorities::kOn) != 0
               ? RowPriorities::PriorityOf(word) + options_.epsilon
               : 0;
  }
  void Reset(const Lanes& lanes);
  void Take(const PriorityValues& values, const ChangedOptions& changed);
  void ReadBlocks(absl::Span<const SlotRange> slots,
                  absl::Span<const LaneBlock> known,
                  std::vector<LaneBlock>* all) const {
    all->clear();
    LaneBlocks blocks(used_.lanes(), slots, known);
    for (LaneBlock block; blocks.Next(&block);) all->push_back(block);
  }
  void Turn(absl::Span<const SlotRange> slots, bool on);
  // Takes the rows of the last append that retired some out of the tree.
  void Settle();
  // Sets the slot's value in the tree, by FlushWeights at the latest.
  void QueueWeight(Slot slot, double base) {
    queue_.push_back(slot);
    bases_.push_back(base);
    if (queue_.size() == kChunk) FlushWeights();
  }
  void FlushWeights();
  void ReweighAll();
  // The value of the smallest priority that is drawn; 0 where there is none.
  double SmallestValue();
  void PublishMass() {
    mass_->Set({.sum = tree_.total(), .min = SmallestValue(), .beta = beta()});
  }

  const PrioritizedOptions options_;
  const std::shared_ptr<PriorityMassGauge> mass_;
  std::atomic<double> alpha_, beta_;
  double weighed_alpha_;  // The alpha of the tree.
  samplers_internal::UsedSlots used_;
  RowPriorities rows_;
  SumTree tree_;
  // The last result of SmallestValue.
  struct {
    double base = -1;
    double alpha = 0;
    double value = 0;
  } smallest_;
  std::optional<float> max_ever_;
  // Appends in flight that overwrite rows, each with the largest priority of
  // those that could be drawn. Only for kMaxInBuffer.
  struct Overwritten {
    Slot first;  // The append's first retired slot, which is no other's.
    float max;
  };
  std::vector<Overwritten> overwritten_;
  // Rows that are off, and their words of before, which the tree still has.
  std::vector<LaneBlock> retired_;
  std::vector<uint32_t> retired_words_;

  std::vector<Slot> queue_;
  std::vector<double> bases_;  // Of the queue's slots.
  // Memory of calls.
  std::vector<double> values_, weights_;
  std::vector<Slot> slots_;
  std::vector<Rng::Block> blocks_;
  std::vector<LaneBlock> turned_;
};

// --- Weights -----------------------------------------------------------------

double SelectorImpl::SmallestValue() {
  const std::optional<float> min = rows_.Min();
  if (!min.has_value()) return 0;
  const double base = *min + options_.epsilon;
  if (base != smallest_.base || weighed_alpha_ != smallest_.alpha) {
    smallest_ = {.base = base, .alpha = weighed_alpha_};
    Power({&base, 1}, weighed_alpha_, {&smallest_.value, 1});
  }
  return smallest_.value;
}

void SelectorImpl::FlushWeights() {
  if (queue_.empty()) return;
  weights_.resize(bases_.size());
  // New rows mostly have the same priority.
  const bool is_one =
      std::all_of(bases_.begin(), bases_.end(),
                  [&](double base) { return base == bases_[0]; });
  const size_t count = is_one ? 1 : bases_.size();
  Power(absl::MakeConstSpan(bases_).first(count), weighed_alpha_,
        absl::MakeSpan(weights_).first(count));
  for (size_t i = 0; i < count; ++i) {
    // Power keeps its results above 0, but a base of 0 is a row that is not to
    // be drawn.
    if (bases_[i] == 0) weights_[i] = 0;
  }
  if (is_one) std::fill(weights_.begin(), weights_.end(), weights_[0]);
  tree_.Set(queue_, weights_);
  queue_.clear();
  bases_.clear();
}

void SelectorImpl::ReweighAll() {
  Settle();
  weighed_alpha_ = alpha();
  rows_.ForEachOn([this](Slot slot) {
    QueueWeight(slot, rows_.Get(slot) + options_.epsilon);
  });
  FlushWeights();
}

absl::Status SelectorImpl::SetAlpha(double alpha) {
  RILL_RETURN_IF_ERROR(CheckExponent("SetAlpha", "alpha", alpha));
  alpha_ = alpha;
  return absl::OkStatus();
}

absl::Status SelectorImpl::SetBeta(double beta) {
  RILL_RETURN_IF_ERROR(CheckExponent("SetBeta", "beta", beta));
  beta_ = beta;
  return absl::OkStatus();
}

// --- Draws and updates -------------------------------------------------------

absl::Status SelectorImpl::Prepare(const Request& /*request*/,
                                   const Anchors& anchors) {
  // Other threads set alpha at any time. It is taken over here, so all weights
  // of a plan are of one alpha.
  Settle();
  if (alpha() != weighed_alpha_) ReweighAll();
  if (tree_.total() > 0) return absl::OkStatus();
  return samplers_internal::NothingToDraw(anchors.size());
}

void SelectorImpl::Select(const Request& request, const Anchors& /*anchors*/,
                          std::vector<Draw>* draws) {
  const double total = tree_.total();
  const Rng rng(request.seed, RngStream::kSampler);
  const auto count = static_cast<size_t>(request.count);
  // Random numbers, targets, slots and weights are made in passes over the
  // batch, each of which overlaps its own loads or fills whole vectors.
  values_.resize(count);
  slots_.resize(count);
  blocks_.resize(count);
  RandomBlocks(rng, request.batch_number,
               static_cast<uint32_t>(request.first_draw),
               absl::MakeSpan(blocks_));
  for (size_t i = 0; i < count; ++i) {
    const double u = UnitDouble(LowBits64(blocks_[i]));
    // With strata draw i comes from the i-th of `count` equal shares (Schaul et
    // al., appendix B.2.1).
    values_[i] = total * (options_.stratified ? (static_cast<double>(i) + u) /
                                                    static_cast<double>(count)
                                              : u);
  }
  tree_.Find(values_, absl::MakeSpan(slots_));
  // Their new priorities may come next.
  for (const Slot slot : slots_) rows_.Prefetch(slot);
  // Weights are relative to the smallest value of all anchors, not of the
  // batch, so a draw's weight does not depend on the other draws. The value is
  // made by the same function as the tree's.
  const double smallest = SmallestValue();
  mass_->Set({.sum = total, .min = smallest, .beta = beta()});
  for (size_t i = 0; i < count; ++i) {
    values_[i] = tree_.Get(slots_[i]) / smallest;
  }
  Power(values_, -beta(), absl::MakeSpan(values_));
  draws->reserve(draws->size() + count);
  for (size_t i = 0; i < count; ++i) {
    // Powers may be out of order by their last bit. Nor may a weight become 0,
    // which would take the row out of the loss.
    const float weight = std::clamp(static_cast<float>(values_[i]),
                                    std::numeric_limits<float>::min(), 1.0f);
    draws->push_back({.slot = slots_[i], .weight = weight});
  }
}

void SelectorImpl::UpdatePriorities(absl::Span<const Draw> draws,
                                    absl::Span<const float> priorities,
                                    const LiveRows& rows) {
  // Spaced out: a processor drops requests for lines above those that it can
  // wait for at once.
  constexpr size_t kAhead = 24;
  const auto fetch = [this](const Draw& draw) {
    if (draw.slot >= 0 && draw.slot < tree_.size()) rows_.Prefetch(draw.slot);
  };
  for (size_t i = 0; i < std::min(kAhead, draws.size()); ++i) fetch(draws[i]);
  for (size_t i = 0; i < draws.size(); ++i) {
    if (i + kAhead < draws.size()) fetch(draws[i + kAhead]);
    if (!rows.IsCurrent(draws[i])) continue;
    rows_.Set(draws[i].slot, priorities[i]);
    if (rows_.IsOn(draws[i].slot)) {
      QueueWeight(draws[i].slot, priorities[i] + options_.epsilon);
    }
    max_ever_ = std::max(max_ever_.value_or(0.0f), priorities[i]);
  }
  FlushWeights();
  PublishMass();
}

// --- Events ------------------------------------------------------------------

void SelectorImpl::OnAttach(const Lanes& lanes,
                            absl::Span<const Cursor> cursors) {
  used_.OnAttach(lanes, cursors);
  Reset(lanes);
}

void SelectorImpl::Reset(const Lanes& lanes) {
  rows_ = RowPriorities(lanes, /*zero_counts=*/options_.epsilon > 0);
  tree_ = SumTree(lanes.num_slots());
  max_ever_.reset();
  overwritten_.clear();
  retired_.clear();
  PublishMass();
}

// A row that is gone has no priority, so that equal rows have equal states.
void SelectorImpl::OnRetire(const WriteEvent& event) {
  if (!event.is_append) return;  // Drawn until it is written.
  Settle();
  ReadBlocks(event.retired, event.retired_blocks, &retired_);
  int64_t count = 0;
  for (const LaneBlock& block : retired_) {
    count += block.num_lanes * block.count;
  }
  retired_words_.resize(static_cast<size_t>(count));
  uint32_t max = 0;
  rows_.Update(event.retired, retired_, [&](uint32_t word, Slot, int64_t i) {
    retired_words_[i] = word;
    max = std::max(max, word);
    return 0;
  });
  // Rows that this append overwrites count up to its OnWrite, and by then their
  // priorities are gone.
  if (options_.new_rows == NewRowPriority::kMaxInBuffer &&
      max >= RowPriorities::kOn) {
    overwritten_.push_back(
        {event.retired[0].first, RowPriorities::PriorityOf(max)});
  }
}

void SelectorImpl::Settle() {
  size_t i = 0;
  const Lanes& lanes = used_.lanes();
  for (const LaneBlock& block : retired_) {
    for (int64_t lane = block.lane; lane < block.end(); ++lane) {
      int64_t position = block.position;
      for (int64_t step = 0; step < block.count; ++step) {
        if (retired_words_[i++] >= RowPriorities::kOn) {
          QueueWeight(lanes.SlotOf(lane, position), 0);
        }
        if (++position == lanes.capacity) position = 0;
      }
    }
  }
  retired_.clear();
  FlushWeights();
}

float SelectorImpl::DefaultPriority() const {
  switch (options_.new_rows) {
    case NewRowPriority::kConstant:
      return options_.new_row_priority;
    case NewRowPriority::kMaxInBuffer: {
      std::optional<float> max = rows_.Max();
      for (const Overwritten& rows : overwritten_) {
        max = std::max(max.value_or(0), rows.max);
      }
      return max.value_or(1.0f);
    }
    case NewRowPriority::kGiven:
    case NewRowPriority::kMaxEver:
      break;
  }
  return max_ever_.value_or(1.0f);
}

void SelectorImpl::OnWrite(const WriteEvent& event) {
  used_.OnWrite(event);
  const bool is_new = event.is_append || event.is_replacement;
  // A part of the keys was written in place without a priority: all stay.
  if (!is_new && event.priorities.empty()) return;
  // As it is before this write: all its rows get the same.
  const float unknown = DefaultPriority();
  if (event.is_append && !event.retired.empty()) {
    std::erase_if(overwritten_, [&](const Overwritten& rows) {
      return rows.first == event.retired[0].first;
    });
  }
  const bool takes_given = options_.new_rows == NewRowPriority::kGiven;
  const bool has_given = !event.priorities.empty();
  const auto change = [&](uint32_t word, Slot slot, int64_t i) {
    float priority = unknown;
    const std::optional<float> given =
        has_given ? samplers_internal::GivenPriority(event, i) : std::nullopt;
    if (given.has_value()) {
      max_ever_ = std::max(max_ever_.value_or(0.0f), *given);
      if (takes_given) priority = *given;
    }
    // Under the other rules the priority that a patch names counts for the
    // largest one only.
    if (!is_new && !takes_given) return word;
    const uint32_t state = word & RowPriorities::kOn;
    if (state != 0) QueueWeight(slot, priority + options_.epsilon);
    return state | RowPriorities::WordOf(priority);
  };
  rows_.Update(event.written, event.written_blocks, change);
  FlushWeights();
  PublishMass();
}

void SelectorImpl::OnClear() {
  used_.OnClear();
  Reset(used_.lanes());
}

void SelectorImpl::Turn(absl::Span<const SlotRange> slots, bool on) {
  const uint32_t state = on ? RowPriorities::kOn : 0;
  // The rows that are about to be taken out of the tree come back into it.
  turned_.clear();
  if (on && !retired_.empty()) ReadBlocks(slots, {}, &turned_);
  const bool come_back = !turned_.empty() && turned_ == retired_;
  if (on && !come_back) Settle();
  rows_.Update(slots, turned_, [&](uint32_t word, Slot slot, int64_t i) {
    const uint32_t turned = (word & ~RowPriorities::kOn) | state;
    // Rows that stay as they are cost no power and no way up the tree.
    if (turned != (come_back ? retired_words_[i] : word)) {
      QueueWeight(slot, BaseOf(turned));
    }
    return turned;
  });
  if (come_back) retired_.clear();
  FlushWeights();
  PublishMass();
}

void SelectorImpl::OnAnchorsAdded(absl::Span<const SlotRange> slots) {
  Turn(slots, true);
}

void SelectorImpl::OnAnchorsRemoved(absl::Span<const SlotRange> slots) {
  Turn(slots, false);
}

void SelectorImpl::OnAnchorsCleared() {
  rows_.TurnAllOff();
  retired_.clear();
  // A new tree is all zeros without memory; setting every leaf would touch it.
  tree_ = SumTree(tree_.size());
  PublishMass();
}

std::vector<float> SelectorImpl::Priorities() const {
  std::vector<float> priorities(tree_.size());
  for (Slot slot = 0; slot < tree_.size(); ++slot) {
    priorities[slot] = rows_.Get(slot);
  }
  return priorities;
}

// --- State -------------------------------------------------------------------

absl::Status SelectorImpl::SaveState(SavedState* state) const {
  PriorityValues{.alpha = alpha(), .beta = beta(), .largest = max_ever_}.Save(
      state);
  samplers_internal::SavePriorities(rows_, used_, state);
  return absl::OkStatus();
}

void SelectorImpl::Take(const PriorityValues& values,
                        const ChangedOptions& changed) {
  beta_ = changed.Has("beta") ? options_.beta : values.beta;
  max_ever_ = values.largest;
  // The tree is not saved, as it is a function of the priorities and alpha.
  alpha_ = changed.Has("alpha") ? options_.alpha : values.alpha;
  ReweighAll();
  PublishMass();
}

absl::Status SelectorImpl::LoadState(const SavedState& state,
                                     const LoadOptions& options) {
  RILL_ASSIGN_OR_RETURN(const PriorityValues values,
                        PriorityValues::Read(state));
  if (options.moved == nullptr) {
    RILL_RETURN_IF_ERROR(
        samplers_internal::LoadPriorities(state, used_, &rows_));
  } else {
    RILL_RETURN_IF_ERROR(samplers_internal::LoadMovedPriorities(
        state, *options.moved, [&](Slot slot, float priority) {
          if (options.rows->IsLive(slot)) rows_.Set(slot, priority);
        }));
  }
  Take(values, options.changed);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrioritizedSelector>>
PrioritizedSelector::Create(const PrioritizedOptions& options) {
  RILL_RETURN_IF_ERROR(CheckExponent("Create", "alpha", options.alpha));
  RILL_RETURN_IF_ERROR(CheckExponent("Create", "beta", options.beta));
  RILL_RETURN_IF_ERROR(
      CheckOptionRange("Create", "epsilon", options.epsilon, kMaxEpsilon));
  RILL_RETURN_IF_ERROR(CheckOptionRange("Create", "new_row_priority",
                                        options.new_row_priority,
                                        std::numeric_limits<float>::max()));
  if (!options.device.is_cpu()) {
    return samplers_internal::MakeDeviceSelector(options);
  }
  return std::make_unique<SelectorImpl>(options,
                                        std::make_shared<PriorityMassGauge>());
}

}  // namespace rill
