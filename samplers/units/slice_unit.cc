// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/slice_unit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/starts_unit.h"
#include "rill/slots/plan_layout.h"

namespace rill {
namespace {

using samplers_internal::StartsUnit;
using samplers_internal::WeighedSet;
using samplers_internal::WindowPlanner;

StartRule RuleOf(const SliceUnitOptions& options) {
  return {.length = options.length,
          .is_strict = options.is_strict,
          .overhang = options.span_right,
          .only_first = options.starts == SliceStarts::kEpisodeStarts ||
                        options.starts == SliceStarts::kOnePerTrajectory,
          .needs_beginning = options.starts == SliceStarts::kEpisodeStarts};
}

absl::string_view NameOf(SliceStarts starts) {
  switch (starts) {
    case SliceStarts::kTrajectories:
      return "kTrajectories";
    case SliceStarts::kRows:
      return "kRows";
    case SliceStarts::kEpisodeStarts:
      return "kEpisodeStarts";
    case SliceStarts::kOnePerTrajectory:
      return "kOnePerTrajectory";
    case SliceStarts::kRecent:
      return "kRecent";
  }
  return "";
}

PlanLayout::Missing MissingOf(const SliceUnitOptions& options) {
  if (options.is_padded) return PlanLayout::Missing::kPadding;
  const bool is_whole =
      options.is_strict && options.span_left == 0 && options.span_right == 0;
  return is_whole ? PlanLayout::Missing::kNone : PlanLayout::Missing::kNothing;
}

// Its option values are without num_slices and batch_size, which are another
// way to give `length`.
UnitTraits TraitsOf(const SliceUnitOptions& options) {
  return {.name = "Slice",
          .options = OptionValues()
                         .Int("length", options.length)
                         .Bool("is_strict", options.is_strict)
                         .Bool("is_padded", options.is_padded)
                         .Int("span_left", options.span_left)
                         .Int("span_right", options.span_right)
                         .Choice("starts", NameOf(options.starts))
                         .Int("windows.frames", options.windows.frames)
                         .Int("windows.steps", options.windows.steps),
          .picks_by_rule = options.starts == SliceStarts::kRows ||
                           options.starts == SliceStarts::kRecent,
          .layout = WindowPlanner(options.windows)
                        .Extend({.length = options.length,
                                 .missing = MissingOf(options)})};
}

class SliceUnit final : public StartsUnit {
 public:
  explicit SliceUnit(const SliceUnitOptions& options)
      : StartsUnit(TraitsOf(options), RuleOf(options)),
        options_(options),
        windows_(options.windows) {}

  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    if (batch_size % options_.length != 0) {
      return InvalidArgument("batch size: got ", batch_size,
                             ", want a multiple of ", options_.length,
                             ", the rows of a slice");
    }
    return windows_.CheckRows(batch_size / options_.length, options_.length);
  }
  absl::Status CheckAnchors() const override;
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

 private:
  // Anchors.
  int64_t size() const override { return trajectories().total(); }
  Slot At(int64_t n) const override {
    const WeighedSet::Hit hit = trajectories().Find(n);
    return index().At(hit.member, hit.rest);
  }
  Slot Pick(const Rng::Block& bits) const override;

  void PickMany(absl::Span<const Rng::Block> bits,
                absl::Span<Slot> slots) const override;
  int64_t PickMember(const Rng::Block& bits) const {
    return BoundedInt(LowBits64(bits), trajectories().size());
  }
  TrajectoryIndex::Place PlaceByTrajectory(const Rng::Block& bits) const;
  Slot PickByRow(uint64_t bits) const;
  // The rows of a slice without those that pad it.
  WindowPlanner::Run RunOf(const TrajectoryIndex::Place& place, const Rng& rng,
                           uint64_t batch_number, uint32_t draw) const;

  const SliceUnitOptions options_;
  const WindowPlanner windows_;
  // The places that PickMany found in this plan, so that Expand need not look.
  struct Picked {
    Slot slot = 0;
    TrajectoryIndex::Place place;
  };
  mutable std::vector<Picked> picked_;
};

absl::Status SliceUnit::CheckAnchors() const {
  picked_.clear();  // Of a plan that failed.
  return CheckStarts(options_.is_strict ? options_.length : 1,
                     options_.starts == SliceStarts::kEpisodeStarts
                         ? " whose beginning is stored"
                         : "",
                     "write longer ones or make shorter slices");
}

Slot SliceUnit::Pick(const Rng::Block& bits) const {
  switch (options_.starts) {
    case SliceStarts::kTrajectories:
    case SliceStarts::kEpisodeStarts:
    case SliceStarts::kOnePerTrajectory:
      break;
    case SliceStarts::kRows:
      return PickByRow(LowBits64(bits));
    case SliceStarts::kRecent: {
      // The two halves of a block are independent.
      const Slot a = PickByRow(LowBits64(bits));
      const Slot b = PickByRow(HighBits64(bits));
      return index().AgeOf(b) < index().AgeOf(a) ? b : a;
    }
  }
  const TrajectoryIndex::Place place = PlaceByTrajectory(bits);
  return index().At(place.trajectory, place.offset);
}

// Each pick is a chain of loads from anywhere, so those of all picks are asked
// for link by link.
void SliceUnit::PickMany(absl::Span<const Rng::Block> bits,
                         absl::Span<Slot> slots) const {
  if (traits().picks_by_rule) {
    for (size_t i = 0; i < bits.size(); ++i) slots[i] = Pick(bits[i]);
    return;
  }
  const absl::Span<const int32_t> members = trajectories().members();
  for (const Rng::Block& block : bits) {
    __builtin_prefetch(&members[PickMember(block)]);
  }
  for (const Rng::Block& block : bits) {
    index().Prefetch(members[PickMember(block)]);
  }
  for (size_t i = 0; i < bits.size(); ++i) {
    const TrajectoryIndex::Place place = PlaceByTrajectory(bits[i]);
    slots[i] = index().At(place.trajectory, place.offset);
    picked_.push_back({.slot = slots[i], .place = place});
  }
}

// The first row stands for the slices that begin before it as well.
TrajectoryIndex::Place SliceUnit::PlaceByTrajectory(
    const Rng::Block& bits) const {
  const int32_t trajectory = trajectories().members()[PickMember(bits)];
  const int64_t starts = StartsOf(trajectory) + options_.span_left;
  const int64_t start =
      BoundedInt(HighBits64(bits), starts) - options_.span_left;
  return {.trajectory = trajectory, .offset = std::max<int64_t>(start, 0)};
}

Slot SliceUnit::PickByRow(uint64_t bits) const {
  const int64_t rows = trajectories().total();
  // Numbers from `rows` on are slices that begin before a trajectory: span_left
  // of each, which its first row stands for.
  const int64_t before = options_.span_left * trajectories().size();
  const int64_t n = BoundedInt(bits, rows + before);
  if (n < rows) return At(n);
  return index().At(trajectories().members()[(n - rows) / options_.span_left],
                    0);
}

WindowPlanner::Run SliceUnit::RunOf(const TrajectoryIndex::Place& place,
                                    const Rng& rng, uint64_t batch_number,
                                    uint32_t draw) const {
  int64_t count = options_.length;
  int64_t offset = place.offset;
  const TrajectoryIndex::Trajectory trajectory = index().Get(place.trajectory);
  if (options_.starts == SliceStarts::kOnePerTrajectory) {
    // The unit's own rule makes only the first row a start, as trajectories are
    // the anchors. This one counts the starts of a slice in it.
    const StartRule all = {.length = options_.length,
                           .is_strict = options_.is_strict};
    offset = rng.UniformInt(
        batch_number, draw,
        all.Count(trajectory.rows, trajectory.is_cut, trajectory.is_closed));
  }
  // The pick says only that the slice begins at the first row or before it.
  // kOnePerTrajectory takes the same random number, but allows no span.
  if (options_.span_left > 0 && place.offset == 0) {
    count -= rng.UniformInt(batch_number, draw, options_.span_left + 1);
  }
  return {.trajectory = place.trajectory,
          .offset = offset,
          .count = std::min(count, trajectory.rows - offset)};
}

void SliceUnit::Expand(const Rng& rng, uint64_t batch_number,
                       SamplePlan* plan) const {
  // Once for the batch, as slices are appended one by one.
  const size_t most = plan->draws.size() * options_.length;
  plan->rows.reserve(most);
  plan->segments.reserve(most);
  auto picked = picked_.begin();
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    std::optional<TrajectoryIndex::Place> place;
    // Draws of a uniform selector come in the order of PickMany. Those of
    // others, or of another part of a mixture, are looked up.
    if (picked != picked_.end() && picked->slot == plan->draws[i].slot) {
      place = picked++->place;
    } else {
      place = index().Find(plan->draws[i].slot);
    }
    if (!place.has_value()) continue;  // No anchor: a selector's mistake.
    WindowPlanner::Run run =
        RunOf(*place, rng, batch_number, static_cast<uint32_t>(i));
    index().AppendSlots(run.trajectory, run.offset, run.count, &plan->rows);
    if (options_.is_padded && run.count < options_.length) {
      run.pads_behind = options_.length - run.count;
      plan->mask.resize(plan->rows.size(), 1);
      const Slot last = plan->rows.back();
      plan->rows.insert(plan->rows.end(), run.pads_behind, last);
      plan->mask.resize(plan->rows.size(), 0);
    }
    plan->segments.resize(plan->rows.size(), static_cast<int64_t>(i));
    windows_.Append(index(), run, i, plan);
  }
  windows_.Finish(plan);
  if (!plan->mask.empty()) plan->mask.resize(plan->rows.size(), 1);
  picked_.clear();
}

absl::Status Refuse(absl::string_view what) {
  return InvalidArgument("MakeSliceUnit: ", what);
}

// T of these options, whichever way they say it.
absl::StatusOr<int64_t> LengthOf(const SliceUnitOptions& options) {
  if (options.num_slices == 0) {
    if (options.batch_size != 0) {
      return Refuse(absl::StrCat("batch_size: got ", options.batch_size,
                                 " without num_slices, want 0"));
    }
    if (options.length >= 1 && options.length <= Sampler::kMaxBatchSize) {
      return options.length;
    }
    return Refuse(absl::StrCat("length: got ", options.length, ", want [1, ",
                               Sampler::kMaxBatchSize, "], or num_slices"));
  }
  if (options.length != 0) {
    return Refuse(absl::StrCat("length and num_slices: got ", options.length,
                               " and ", options.num_slices,
                               ", want one of the two"));
  }
  if (options.batch_size < 1 || options.batch_size > Sampler::kMaxBatchSize ||
      options.num_slices < 1 || options.batch_size % options.num_slices != 0) {
    return Refuse(absl::StrCat(
        "batch_size and num_slices: got ", options.batch_size, " and ",
        options.num_slices, ", want the first in [1, ", Sampler::kMaxBatchSize,
        "] and a multiple of the second, which is >= 1"));
  }
  return options.batch_size / options.num_slices;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeSliceUnit(
    const SliceUnitOptions& given) {
  SliceUnitOptions options = given;
  RILL_ASSIGN_OR_RETURN(options.length, LengthOf(given));
  RILL_RETURN_IF_ERROR(
      WindowPlanner::Check("MakeSliceUnit: windows", given.windows));
  for (const auto& [name, span] :
       {std::pair("span_left", options.span_left),
        std::pair("span_right", options.span_right)}) {
    if (span < 0 || span >= options.length) {
      return Refuse(absl::StrCat(name, ": got ", span, ", want [0, ",
                                 options.length - 1,
                                 "], less than a slice's length"));
    }
  }
  const bool has_span = options.span_left > 0 || options.span_right > 0;
  if (has_span && (options.starts == SliceStarts::kEpisodeStarts ||
                   options.starts == SliceStarts::kOnePerTrajectory)) {
    return Refuse(
        absl::StrCat("span: got (", options.span_left, ", ", options.span_right,
                     "), want (0, 0) where the anchors are trajectories"));
  }
  if (options.is_padded && options.is_strict && !has_span) {
    return Refuse(
        "is_padded: got true where no slice is short, want is_strict = false "
        "or a span");
  }
  return std::make_unique<SliceUnit>(options);
}

}  // namespace rill
