// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/sequence_unit.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/periodic_anchors.h"
#include "rill/samplers/units/starts_unit.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

using samplers_internal::PeriodicAnchors;

// How many rows of its trajectory an anchor needs before and behind it.
PeriodicAnchors::Rule RuleOf(const SequenceUnitOptions& options) {
  PeriodicAnchors::Rule rule = {.period = options.period};
  if (options.needs_burn_in) rule.before = options.burn_in * options.dilation;
  if (options.end == SequenceEnd::kStrict) {
    // The last step of a whole sequence lies so many rows behind its anchor.
    rule.after = (options.length + options.bootstrap - 1) * options.dilation;
  }
  return rule;
}

absl::string_view NameOf(SequenceEnd end) {
  switch (end) {
    case SequenceEnd::kPad:
      return "kPad";
    case SequenceEnd::kStop:
      return "kStop";
    case SequenceEnd::kStrict:
      return "kStrict";
    case SequenceEnd::kShift:
      return "kShift";
    case SequenceEnd::kIncludeReset:
      return "kIncludeReset";
  }
  return "";
}

PlanLayout::Missing MissingOf(const SequenceUnitOptions& options) {
  switch (options.end) {
    case SequenceEnd::kStop:
      return PlanLayout::Missing::kNothing;
    case SequenceEnd::kStrict:
      if (options.burn_in == 0 || options.needs_burn_in) {
        return PlanLayout::Missing::kNone;
      }
      return PlanLayout::Missing::kPadding;
    case SequenceEnd::kPad:
    case SequenceEnd::kShift:
    case SequenceEnd::kIncludeReset:
      break;
  }
  return PlanLayout::Missing::kPadding;
}

UnitTraits TraitsOf(const SequenceUnitOptions& options) {
  return {.name = "Sequence",
          .options = OptionValues()
                         .Int("length", options.length)
                         .Int("burn_in", options.burn_in)
                         .Int("bootstrap", options.bootstrap)
                         .Int("dilation", options.dilation)
                         .Int("period", options.period)
                         .Choice("end", NameOf(options.end))
                         .Bool("needs_burn_in", options.needs_burn_in)
                         .Int("windows.frames", options.windows.frames)
                         .Int("windows.steps", options.windows.steps),
          .layout = samplers_internal::WindowPlanner(options.windows)
                        .Extend({.burn_in = options.burn_in,
                                 .length = options.length,
                                 .bootstrap = options.bootstrap,
                                 .missing = MissingOf(options)})};
}

// A sequence has burn_in + length + bootstrap rows, whatever its trajectory
// has. Rows that are missing are padded and masked. Only kStop makes shorter
// ones. An anchor is the first step to learn from, before kShift moves it.
class SequenceUnit final
    : public samplers_internal::IndexedUnit<PeriodicAnchors> {
 public:
  explicit SequenceUnit(const SequenceUnitOptions& options)
      : IndexedUnit(TraitsOf(options), RuleOf(options)),
        options_(options),
        windows_(options.windows) {}

  const Anchors& anchors() const override { return starts(); }
  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    const int64_t rows =
        options_.burn_in + options_.length + options_.bootstrap;
    if (batch_size % rows == 0) {
      return windows_.CheckRows(batch_size / rows, rows);
    }
    return InvalidArgument(
        "batch size: got ", batch_size, ", want a multiple of ", rows,
        ", the rows of a sequence (burn_in + length + bootstrap)");
  }
  absl::Status CheckAnchors() const override;
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

 private:
  void AppendSteps(TrajectoryIndex::Handle trajectory, int64_t offset,
                   int64_t steps, std::vector<Slot>* rows) const;
  // Appends `count` times a row that only pads.
  static void Pad(Slot row, int64_t count, SamplePlan* plan);
  void ExpandInTrajectory(const TrajectoryIndex::Place& anchor, size_t draw,
                          SamplePlan* plan) const;
  void ExpandInLane(Slot anchor, SamplePlan* plan) const;

  const SequenceUnitOptions options_;
  const samplers_internal::WindowPlanner windows_;
};

absl::Status SequenceUnit::CheckAnchors() const {
  const PeriodicAnchors::Rule rule = RuleOf(options_);
  return samplers_internal::CheckTrajectories(
      index(), starts().size(), rule.before + 1 + rule.after,
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
  // The mask is empty until the first row pads. Rows that it does not reach yet
  // are real.
  plan->mask.resize(plan->rows.size(), 1);
  plan->rows.insert(plan->rows.end(), count, row);
  plan->mask.resize(plan->rows.size(), 0);
}

void SequenceUnit::ExpandInTrajectory(const TrajectoryIndex::Place& anchor,
                                      size_t draw, SamplePlan* plan) const {
  const int64_t dilation = options_.dilation;
  const int64_t wanted = options_.length + options_.bootstrap;
  const int64_t rows = index().Get(anchor.trajectory).rows;
  int64_t offset = anchor.offset;
  // Goes back by as many rows as steps to learn from are missing. It stops at
  // the first row, or where the burn-in that has to be there begins.
  if (options_.end == SequenceEnd::kShift) {
    const int64_t missing =
        (options_.length - 1) * dilation - (rows - 1 - offset);
    const int64_t kept =
        options_.needs_burn_in ? options_.burn_in * dilation : 0;
    offset -=
        std::clamp<int64_t>(missing, 0, std::max<int64_t>(offset - kept, 0));
  }
  // With a dilation, burn-in and steps lie on one grid through the first step
  // to learn from.
  const int64_t before = std::min(options_.burn_in, offset / dilation);
  const int64_t steps = std::min(wanted, (rows - 1 - offset) / dilation + 1);
  const int64_t first = offset - before * dilation;
  const int64_t pads = options_.end == SequenceEnd::kStop ? 0 : wanted - steps;
  Pad(index().At(anchor.trajectory, first), options_.burn_in - before, plan);
  AppendSteps(anchor.trajectory, first, before + steps, &plan->rows);
  Pad(plan->rows.back(), pads, plan);
  windows_.Append(index(),
                  {.trajectory = anchor.trajectory,
                   .offset = first,
                   .count = before + steps,
                   .pads_before = options_.burn_in - before,
                   .pads_behind = pads},
                  draw, plan);
}

void SequenceUnit::ExpandInLane(Slot anchor, SamplePlan* plan) const {
  const Lanes& lanes = index().lanes();
  const int64_t lane = lanes.LaneOf(anchor);
  // Steps of the lane relative to the anchor that are live.
  const int64_t oldest = -index().StepsBefore(anchor);
  const int64_t newest = index().AgeOf(anchor);
  const int64_t wanted = options_.length + options_.bootstrap;
  for (int64_t i = -options_.burn_in; i < wanted; ++i) {
    const int64_t step = i * options_.dilation;
    // Beyond the lane's live rows the nearest one is repeated.
    const int64_t there = std::clamp(step, oldest, newest);
    // `there` is above -capacity, so one capacity more makes the sum positive.
    const Slot row =
        lanes.SlotOf(lane, (lanes.PositionOf(anchor) + there + lanes.capacity) %
                               lanes.capacity);
    if (there == step) {
      plan->rows.push_back(row);
    } else {
      Pad(row, 1, plan);
    }
  }
}

void SequenceUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                          SamplePlan* plan) const {
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const Slot anchor = plan->draws[i].slot;
    const std::optional<TrajectoryIndex::Place> place = index().Find(anchor);
    if (!place.has_value()) continue;  // No anchor: a selector's mistake.
    if (options_.end == SequenceEnd::kIncludeReset) {
      ExpandInLane(anchor, plan);
    } else {
      ExpandInTrajectory(*place, i, plan);
    }
    plan->segments.resize(plan->rows.size(), static_cast<int64_t>(i));
    // Once a row pads, every row has its place in the mask.
    if (!plan->mask.empty()) plan->mask.resize(plan->rows.size(), 1);
  }
  windows_.Finish(plan);
}

absl::Status CheckRange(absl::string_view option, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("MakeSequenceUnit: ", option, ": got ", value,
                         ", want [", least, ", ", most, "]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeSequenceUnit(
    const SequenceUnitOptions& options) {
  // Each bound leaves out what the options before it take, so the rows of one
  // sequence fit a batch and no sum overflows.
  constexpr int64_t kMost = Sampler::kMaxBatchSize;
  RILL_RETURN_IF_ERROR(CheckRange("length", options.length, 1, kMost));
  RILL_RETURN_IF_ERROR(
      CheckRange("burn_in", options.burn_in, 0, kMost - options.length));
  RILL_RETURN_IF_ERROR(CheckRange("bootstrap", options.bootstrap, 0,
                                  kMost - options.length - options.burn_in));
  RILL_RETURN_IF_ERROR(CheckRange("dilation", options.dilation, 1, kMost));
  RILL_RETURN_IF_ERROR(CheckRange("period", options.period, 1, kMost));
  RILL_RETURN_IF_ERROR(samplers_internal::WindowPlanner::Check(
      "MakeSequenceUnit: windows", options.windows));
  const bool is_across = options.end == SequenceEnd::kIncludeReset;
  if (is_across && options.needs_burn_in) {
    return InvalidArgument(
        "MakeSequenceUnit: needs_burn_in: got true with kIncludeReset, want "
        "false: the burn-in goes on into the trajectory before");
  }
  if (!options.windows.is_empty() && (is_across || options.dilation > 1)) {
    return InvalidArgument(
        "MakeSequenceUnit: windows: got ", options.windows.frames,
        " frames and ", options.windows.steps, " steps with ",
        is_across ? "kIncludeReset"
                  : absl::StrCat("a dilation of ", options.dilation),
        ", want none, or sequences of consecutive rows of one trajectory");
  }
  return std::make_unique<SequenceUnit>(options);
}

}  // namespace rill
