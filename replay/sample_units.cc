// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sample_units.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/row_windows.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/transforms/unit_transform.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

// Rows for the arithmetic of `options`.
RowWindows WindowsOf(const RowArithmetic::Options& options) {
  RowWindows windows;
  if (options.frames.has_value()) windows.frames = options.frames->num_frames;
  if (options.n_step.has_value()) windows.steps = options.n_step->num_steps;
  return windows;
}

absl::Status CheckNoWindows(absl::string_view caller,
                            const RowWindows& windows) {
  if (windows.is_empty()) return absl::OkStatus();
  return InvalidArgument(
      caller, ": windows: got ", windows.frames, " frames and ", windows.steps,
      " steps, want none: they are made of frames and n_step");
}

absl::StatusOr<SampleUnit> Join(absl::StatusOr<std::unique_ptr<Unit>> rows,
                                const RowArithmetic::Options& options) {
  RILL_RETURN_IF_ERROR(rows.status());
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<const UnitTransform> arithmetic,
                        RowArithmetic::Create(options));
  return SampleUnit(*std::move(rows), std::move(arithmetic));
}

}  // namespace

absl::StatusOr<SampleUnit> MakeTransitions(const TransitionsOptions& options) {
  const RowArithmetic::Options made = {.n_step = options.n_step,
                                       .frames = options.frames};
  const RowWindows windows = WindowsOf(made);
  // Options out of range are named by the arithmetic's words.
  RILL_RETURN_IF_ERROR(RowArithmetic::Create(made).status());
  if (windows.is_empty()) return SampleUnit(MakeTransitionUnit());
  return Join(MakeWindowUnit(windows), made);
}

absl::StatusOr<SampleUnit> MakeSlices(const SlicesOptions& options) {
  RILL_RETURN_IF_ERROR(CheckNoWindows("MakeSlices", options.slices.windows));
  const RowArithmetic::Options made = {.n_step = options.n_step,
                                       .frames = options.frames,
                                       .slice_marks = options.marks};
  RILL_RETURN_IF_ERROR(RowArithmetic::Create(made).status());
  SliceUnitOptions slices = options.slices;
  slices.windows = WindowsOf(made);
  return Join(MakeSliceUnit(slices), made);
}

absl::StatusOr<SampleUnit> MakeSequences(const SequencesOptions& options) {
  RILL_RETURN_IF_ERROR(
      CheckNoWindows("MakeSequences", options.sequences.windows));
  RowArithmetic::Options made = {.n_step = options.n_step,
                                 .frames = options.frames};
  RILL_RETURN_IF_ERROR(RowArithmetic::Create(made).status());
  SequenceUnitOptions sequences = options.sequences;
  // Both halves get their numbers from one place, so they cannot differ.
  sequences.windows = WindowsOf(made);
  absl::StatusOr<std::unique_ptr<Unit>> rows = MakeSequenceUnit(sequences);
  if (options.has_marks) {
    made.sequence_marks =
        SequenceMarks::Options{.length = sequences.length,
                               .burn_in = sequences.burn_in,
                               .bootstrap = sequences.bootstrap,
                               .dilation = sequences.dilation};
  }
  return Join(std::move(rows), made);
}

absl::StatusOr<SampleUnit> MakeTrajectories(
    const TrajectoriesOptions& options) {
  return Join(MakeTrajectoryUnit(options.trajectories),
              {.slice_marks = options.marks});
}

absl::StatusOr<SampleUnit> MakeHindsight(const HindsightOptions& options) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> rows,
                        MakeHindsightUnit(options.goals));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<const UnitTransform> arithmetic,
                        HindsightRelabel::Create(options.relabel));
  return SampleUnit(std::move(rows), std::move(arithmetic));
}

}  // namespace rill
