// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/replay/sample_units.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

UnitPart Part(absl::StatusOr<SampleUnit> unit) {
  return {Value(std::move(unit))};
}

// n_step and frames, which several units have.
template <typename Options>
void ReadArithmetic(OptionReader* reader, Options* options) {
  nb::dict n_step;
  if (reader->Read("n_step", &n_step); n_step.size() > 0) {
    NStepReturns::Options read;
    OptionReader::OfCopy("n_step", n_step)
        .Read("num_steps", &read.num_steps)
        .Read("gamma", &read.gamma)
        .Read("reward_keys", &read.reward_keys)
        .CheckAllRead();
    options->n_step = std::move(read);
  }
  nb::dict frames;
  if (reader->Read("frames", &frames); frames.size() > 0) {
    StackFrames::Options read;
    OptionReader::OfCopy("frames", frames)
        .Read("num_frames", &read.num_frames)
        .Read("keys", &read.keys)
        .Read("dim", &read.dim)
        .Read("new_dim", &read.new_dim)
        .ReadEnum(
            "padding", &read.padding, {"same", "constant"},
            {StackFrames::Padding::kSame, StackFrames::Padding::kConstant})
        .Read("value", &read.value)
        .CheckAllRead();
    options->frames = std::move(read);
  }
}

UnitPart Transitions(const nb::dict& given) {
  OptionReader reader = OptionReader::OfCopy("Transition", given);
  TransitionsOptions options;
  ReadArithmetic(&reader, &options);
  reader.CheckAllRead();
  return Part(MakeTransitions(options));
}

UnitPart Slices(const nb::dict& given) {
  OptionReader reader = OptionReader::OfCopy("Slice", given);
  SlicesOptions options;
  SliceUnitOptions& slices = options.slices;
  bool has_marks = true;
  reader.Read("length", &slices.length)
      .Read("num_slices", &slices.num_slices)
      .Read("batch_size", &slices.batch_size)
      .Read("strict_length", &slices.is_strict)
      .Read("pad_output", &slices.is_padded)
      .Read("span_left", &slices.span_left)
      .Read("span_right", &slices.span_right)
      .ReadEnum("starts", &slices.starts,
                {"trajectories", "rows", "episode_starts", "one_per_trajectory",
                 "recent"},
                {SliceStarts::kTrajectories, SliceStarts::kRows,
                 SliceStarts::kEpisodeStarts, SliceStarts::kOnePerTrajectory,
                 SliceStarts::kRecent})
      .Read("has_marks", &has_marks);
  ReadArithmetic(&reader, &options);
  reader.CheckAllRead();
  if (!has_marks) options.marks = std::nullopt;
  return Part(MakeSlices(options));
}

UnitPart Sequences(const nb::dict& given) {
  OptionReader reader = OptionReader::OfCopy("Sequence", given);
  SequencesOptions options;
  SequenceUnitOptions& sequences = options.sequences;
  reader.Read("length", &sequences.length)
      .Read("burn_in", &sequences.burn_in)
      .Read("bootstrap", &sequences.bootstrap)
      .Read("dilation", &sequences.dilation)
      .Read("period", &sequences.period)
      .ReadEnum(
          "episode_boundary", &sequences.end,
          {"pad", "stop", "include_reset", "shorten", "strict"},
          {SequenceEnd::kPad, SequenceEnd::kShift, SequenceEnd::kIncludeReset,
           SequenceEnd::kStop, SequenceEnd::kStrict})
      .Read("needs_burn_in", &sequences.needs_burn_in)
      .Read("has_marks", &options.has_marks);
  ReadArithmetic(&reader, &options);
  reader.CheckAllRead();
  return Part(MakeSequences(options));
}

UnitPart Trajectories(const nb::dict& given) {
  OptionReader reader = OptionReader::OfCopy("Trajectory", given);
  TrajectoriesOptions options;
  reader.Read("min_rows", &options.trajectories.min_rows)
      .Read("max_rows", &options.trajectories.max_rows)
      .Read("only_complete", &options.trajectories.only_complete)
      .CheckAllRead();
  return Part(MakeTrajectories(options));
}

// function(achieved, desired), arrays [M, ...], gives an array of M rows.
HindsightRelabel::Function GoalFunction(const std::string& who,
                                        const nb::object& function) {
  return [who, function = SharedObject(function)](
             const Tensor& achieved,
             const Tensor& desired) -> absl::StatusOr<Tensor> {
    Tensor made;
    RILL_RETURN_IF_ERROR(CallPython(who, [&] {
      const nb::object array =
          function.get()(ArrayOf(Value(ReadOnly(achieved)), "achieved"),
                         ArrayOf(Value(ReadOnly(desired)), "desired"));
      made = Value(TensorOf(array, who).Clone());
    }));
    return made;
  };
}

UnitPart Hindsight(const nb::dict& given) {
  OptionReader reader = OptionReader::OfCopy("Hindsight", given);
  HindsightOptions options;
  HindsightRelabel::Options& relabel = options.relabel;
  nb::object reward;
  nb::object terminated;
  reader
      .ReadEnum("strategy", &options.goals.strategy,
                {"future", "final", "episode", "random"},
                {HindsightStrategy::kFuture, HindsightStrategy::kFinal,
                 HindsightStrategy::kEpisode, HindsightStrategy::kRandom})
      .Read("her_ratio", &options.goals.ratio)
      .Read("achieved_goal_key", &relabel.achieved_key)
      .Read("desired_goal_key", &relabel.desired_key)
      .Read("reward_key", &relabel.reward_key)
      .Read("reward_fn", &reward)
      .Read("terminated_fn", &terminated)
      .CheckAllRead();
  if (reward.is_valid()) relabel.reward = GoalFunction("reward_fn", reward);
  if (terminated.is_valid()) {
    relabel.terminated = GoalFunction("terminated_fn", terminated);
  }
  return Part(MakeHindsight(options));
}

}  // namespace

void BindUnits(nb::module_& module) {
  nb::class_<UnitPart>(module, "SampleUnit");
  module.def("transitions", &Transitions);
  module.def("slices", &Slices);
  module.def("sequences", &Sequences);
  module.def("trajectories", &Trajectories);
  module.def("hindsight", &Hindsight);
}

}  // namespace rill::python
