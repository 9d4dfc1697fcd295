// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/sequence_unit.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/state_bytes.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/periodic_anchors.h"
#include "rill/samplers/units/starts_unit.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

using samplers_internal::PeriodicAnchors;
using samplers_internal::StateReader;
using samplers_internal::StateWriter;

PeriodicAnchors::Rule RuleOf(const SequenceUnitOptions& options) {
  PeriodicAnchors::Rule rule = {.period = options.period};
  if (options.needs_burn_in) rule.before = options.burn_in * options.dilation;
  if (options.end == SequenceEnd::kStrict) {
    rule.after = (options.length - 1) * options.dilation;
  }
  return rule;
}

class SequenceUnit final : public Unit {
 public:
  explicit SequenceUnit(const SequenceUnitOptions& options)
      : options_(options), anchors_(RuleOf(options)) {}

  const Anchors& anchors() const override { return anchors_; }
  void SetListener(AnchorListener* listener) override {
    anchors_.SetListener(listener);
  }
  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    const int64_t rows = options_.burn_in + options_.length;
    if (batch_size % rows == 0) return batch_size / rows;
    return absl::InvalidArgumentError(
        absl::StrCat("batch size: got ", batch_size, ", want a multiple of ",
                     rows, ", the rows of a sequence (burn_in + length)"));
  }
  absl::Status CheckAnchors() const override;
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

  void SaveState(StateWriter* writer) const override { anchors_.Save(writer); }
  absl::Status LoadState(StateReader* reader) override {
    return anchors_.Load(reader);
  }
  absl::Status SkipState(StateReader* reader) const override {
    return PeriodicAnchors::Skip(reader);
  }
  absl::string_view name() const override { return "Sequence"; }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    anchors_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { anchors_.OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { anchors_.OnWrite(event); }
  void OnClear() override { anchors_.OnClear(); }

 private:
  const TrajectoryIndex& index() const { return anchors_.index(); }
  void AppendSteps(TrajectoryIndex::Handle trajectory, int64_t offset,
                   int64_t steps, std::vector<Slot>* rows) const;
  // Appends `count` times a row that only pads.
  static void Pad(Slot row, int64_t count, SamplePlan* plan);

  const SequenceUnitOptions options_;
  PeriodicAnchors anchors_;
};

absl::Status SequenceUnit::CheckAnchors() const {
  const PeriodicAnchors::Rule rule = RuleOf(options_);
  return samplers_internal::CheckTrajectories(
      index(), anchors_.size(), rule.before + 1 + rule.after,
      options_.period > 1
          ? absl::StrCat(" around a multiple of ", options_.period, " steps")
          : "",
      "write longer ones or make shorter sequences");
}

void SequenceUnit::AppendSteps(TrajectoryIndex::Handle trajectory,
                               int64_t offset, int64_t steps,
                               std::vector<Slot>* rows) const {
  if (options_.dilation == 1) {
    index().AppendSlots(trajectory, offset, steps, rows);
    return;
  }
  for (int64_t i = 0; i < steps; ++i) {
    rows->push_back(index().At(trajectory, offset + i * options_.dilation));
  }
}

void SequenceUnit::Pad(Slot row, int64_t count, SamplePlan* plan) {
  if (count == 0) return;
  plan->mask.resize(plan->rows.size(), 1);
  plan->rows.insert(plan->rows.end(), count, row);
  plan->mask.resize(plan->rows.size(), 0);
}

void SequenceUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                          SamplePlan* plan) const {
  const int64_t dilation = options_.dilation;
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const std::optional<TrajectoryIndex::Place> place =
        index().Find(plan->draws[i].slot);
    if (!place.has_value()) continue;  // No anchor: a selector's mistake.
    const auto [trajectory, offset] = *place;
    const int64_t behind = index().Get(trajectory).rows - offset - 1;
    const int64_t before = std::min(options_.burn_in, offset / dilation);
    const int64_t steps = std::min(options_.length, behind / dilation + 1);
    const int64_t first = offset - before * dilation;
    Pad(index().At(trajectory, first), options_.burn_in - before, plan);
    AppendSteps(trajectory, first, before + steps, &plan->rows);
    if (options_.end == SequenceEnd::kPad) {
      Pad(plan->rows.back(), options_.length - steps, plan);
    }
    plan->segments.resize(plan->rows.size(), static_cast<int64_t>(i));
  }
  if (!plan->mask.empty()) plan->mask.resize(plan->rows.size(), 1);
}

absl::Status CheckRange(absl::string_view option, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("MakeSequenceUnit: ", option,
                                                 ": got ", value, ", want [",
                                                 least, ", ", most, "]"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeSequenceUnit(
    const SequenceUnitOptions& options) {
  constexpr int64_t kMost = Sampler::kMaxBatchSize;
  RILL_RETURN_IF_ERROR(CheckRange("length", options.length, 1, kMost));
  RILL_RETURN_IF_ERROR(
      CheckRange("burn_in", options.burn_in, 0, kMost - options.length));
  RILL_RETURN_IF_ERROR(CheckRange("dilation", options.dilation, 1, kMost));
  RILL_RETURN_IF_ERROR(CheckRange("period", options.period, 1, kMost));
  return std::make_unique<SequenceUnit>(options);
}

}  // namespace rill
