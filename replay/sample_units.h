// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLE_UNITS_H_
#define RILL_REPLAY_SAMPLE_UNITS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/units/hindsight_unit.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/trajectory_unit.h"
#include "rill/transforms/units/hindsight_relabel.h"
#include "rill/transforms/units/n_step_returns.h"
#include "rill/transforms/units/slice_marks.h"
#include "rill/transforms/units/stack_frames.h"

namespace rill {

// Both halves of an item of a batch from one set of options: the rows that a
// sampler plans for it, and the arithmetic on their values. Pass the unit to a
// sampler (MakeUniformSamplerOver,
// MakePrioritizedSamplerOver, MakeSampler), and that to a ReplayBuffer.
//
// n-step returns and frame stacks compose with each other, over single rows,
// slices and sequences with burn-in. Rainbow is `n_step` and `frames` over
// single rows, R2D2 `n_step` over sequences. Each part's meaning, errors and
// cost: transforms/units/row_arithmetic.h. The rows that are read:
// samplers/units/row_windows.h.
//
// INVALID_ARGUMENT names the option, or two that contradict each other.
// RowWindows are made of `n_step` and `frames` here: set ones are refused.
//
// Example (SampleUnitsTest.Example runs it): what Rainbow learns from.
//   RILL_ASSIGN_OR_RETURN(
//       SampleUnit unit,
//       MakeTransitions(
//           {.n_step = NStepReturns::Options{.num_steps = 3, .gamma = 0.99},
//            .frames = StackFrames::Options{
//                .num_frames = 4, .keys = {"pixels", "next/pixels"}}}));
//   RILL_ASSIGN_OR_RETURN(
//       auto sampler,
//       MakePrioritizedSamplerOver(std::move(unit), {.alpha = 0.5}));
//   RILL_ASSIGN_OR_RETURN(auto buffer,
//                         ReplayBuffer::Create({.storage = storage,
//                                               .sampler = std::move(sampler),
//                                               .batch_size = 32}));

// Single rows: what transitions become.
struct TransitionsOptions {
  std::optional<NStepReturns::Options> n_step = std::nullopt;
  std::optional<StackFrames::Options> frames = std::nullopt;
};
absl::StatusOr<SampleUnit> MakeTransitions(const TransitionsOptions& options);

// Slices of T steps (samplers/units/slice_unit.h). `marks` tells in the flags
// where they were cut.
struct SlicesOptions {
  SliceUnitOptions slices = {};
  std::optional<NStepReturns::Options> n_step = std::nullopt;
  std::optional<StackFrames::Options> frames = std::nullopt;
  std::optional<SliceMarks::Options> marks = SliceMarks::Options{};
};
absl::StatusOr<SampleUnit> MakeSlices(const SlicesOptions& options);

// Sequences with burn-in (samplers/units/sequence_unit.h). `has_marks`: each
// row says where it stands (transforms/units/sequence_marks.h).
struct SequencesOptions {
  SequenceUnitOptions sequences = {};
  std::optional<NStepReturns::Options> n_step = std::nullopt;
  std::optional<StackFrames::Options> frames = std::nullopt;
  bool has_marks = true;
};
absl::StatusOr<SampleUnit> MakeSequences(const SequencesOptions& options);

// Whole trajectories (samplers/units/trajectory_unit.h), marked as slices.
struct TrajectoriesOptions {
  TrajectoryUnitOptions trajectories = {};
  std::optional<SliceMarks::Options> marks = SliceMarks::Options{};
};
absl::StatusOr<SampleUnit> MakeTrajectories(const TrajectoriesOptions& options);

// Single rows, some of which get a goal that was reached.
struct HindsightOptions {
  HindsightUnitOptions goals = {};
  HindsightRelabel::Options relabel = {};
};
absl::StatusOr<SampleUnit> MakeHindsight(const HindsightOptions& options);

}  // namespace rill

#endif  // RILL_REPLAY_SAMPLE_UNITS_H_
