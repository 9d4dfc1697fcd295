// SPDX-License-Identifier: Apache-2.0
// PlanReads decides for each stored leaf where it is gathered. It goes into the
// batch's leaf or apart, and comes from the batch's own rows or from the end of
// the window. Each byte is so read once. Apply then runs the parts in one
// order: frames, sums, marks of slices, marks of sequences.
#include "rill/transforms/units/row_arithmetic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"
#include "rill/base/status_macros.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/units/draw_rows.h"
#include "rill/transforms/units/draw_walk.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::DrawRows;
using transforms_internal::DrawWalk;
using transforms_internal::IsNext;
using transforms_internal::UnitWork;

struct Parts {
  std::optional<NStepReturns> n_step;
  std::optional<StackFrames> frames;
  std::optional<SliceMarks> slice_marks;
  std::optional<SequenceMarks> sequence_marks;
};

// "NStepReturns+StackFrames": the names of the parts, in a fixed order.
std::string NameOf(const Parts& parts) {
  std::string name;
  const auto add = [&name](bool is_there, absl::string_view part) {
    if (is_there) absl::StrAppend(&name, name.empty() ? "" : "+", part);
  };
  add(parts.n_step.has_value(), "NStepReturns");
  add(parts.frames.has_value(), "StackFrames");
  add(parts.slice_marks.has_value(), "SliceMarks");
  add(parts.sequence_marks.has_value(), "SequenceMarks");
  return name;
}

// Which of the plan's lists is which; -1 where there is none. Units plan them
// in this order (slots/plan_layout.h).
struct Lists {
  int frames_before = -1;
  int steps_behind = -1;
  int window_ends = -1;
  int count = 0;
};

Lists ListsOf(const Parts& parts) {
  Lists lists;
  if (parts.frames.has_value()) lists.frames_before = lists.count++;
  if (parts.n_step.has_value()) {
    lists.steps_behind = lists.count++;
    lists.window_ends = lists.count++;
  }
  return lists;
}

// Windows of several steps overlap from row to row, and rows of a dilated
// sequence have others between them.
bool MarksPieces(const Parts& parts) {
  if (parts.n_step.has_value() && parts.n_step->options().num_steps > 1) {
    return false;
  }
  return parts.slice_marks.has_value() ||
         (parts.sequence_marks.has_value() &&
          parts.sequence_marks->options().dilation == 1);
}

UnitTransform::Traits TraitsOf(const Parts& parts) {
  OptionValues options;
  if (parts.n_step.has_value()) {
    options.Part("n_step", "NStepReturns", parts.n_step->option_values());
  }
  if (parts.frames.has_value()) {
    options.Part("frames", "StackFrames", parts.frames->option_values());
  }
  if (parts.slice_marks.has_value()) {
    options.Part("slice_marks", "SliceMarks",
                 parts.slice_marks->option_values());
  }
  if (parts.sequence_marks.has_value()) {
    options.Part("sequence_marks", "SequenceMarks",
                 parts.sequence_marks->option_values());
  }
  return {.name = NameOf(parts),
          .options = std::move(options),
          // A sequence's number is that of its draw.
          .is_drawwise = !parts.sequence_marks.has_value(),
          .marks_pieces = MarksPieces(parts),
          .leaves_launches = true};
}

class RowArithmeticTransform final : public UnitTransform {
 public:
  explicit RowArithmeticTransform(Parts parts, bool makes_stacks = true)
      : UnitTransform(TraitsOf(parts)),
        parts_(std::move(parts)),
        makes_stacks_(makes_stacks),
        lists_(ListsOf(parts_)),
        plan_reads_(absl::StrCat(name(), "::PlanReads")),
        batch_spec_(absl::StrCat(name(), "::BatchSpec")),
        apply_(absl::StrCat(name(), "::Apply")),
        enqueue_(absl::StrCat(name(), "::Enqueue")) {}

  std::vector<Joined> JoinedLeaves(const TensorDictSpec& rows) const override;
  absl::Status JoinedSlots(const SamplePlan& plan, const Joined& joined,
                           std::vector<Slot>* slots) const override;
  std::unique_ptr<UnitTransform> WithoutJoined() const override;
  absl::Status CheckLayout(const PlanLayout& plans) const override;
  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override;
  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override;
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override;
  absl::Status Enqueue(const SamplePlan& plan, const TensorDict& rows,
                       absl::Span<const TensorDict> context,
                       StreamUploads* uploads,
                       TensorDict* batch) const override;

 private:
  // 1 where there are no windows: a window of one step is the row itself.
  int64_t num_steps() const {
    return parts_.n_step.has_value() ? parts_.n_step->options().num_steps : 1;
  }
  int64_t num_frames() const {
    return parts_.frames.has_value() ? parts_.frames->options().num_frames : 1;
  }
  bool IsStacked(absl::string_view key) const {
    return parts_.frames.has_value() && parts_.frames->IsStacked(key);
  }
  bool IsMark(absl::string_view key) const {
    return parts_.slice_marks.has_value() && parts_.slice_marks->IsMark(key);
  }
  bool IsSummed(absl::string_view key) const {
    return parts_.n_step.has_value() && parts_.n_step->IsSummed(key);
  }

  // The lists that the parts look at.
  struct Input {
    StackFrames::Input frames;
    const SamplePlan::Context* steps = nullptr;
    const TensorDict* behind = nullptr;
  };
  Input InputOf(const SamplePlan& plan, const TensorDict& rows,
                absl::Span<const TensorDict> context) const;
  bool has_stacks() const { return parts_.frames.has_value() && makes_stacks_; }

  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const;
  absl::Status CheckPlan(const SamplePlan& plan) const;
  bool HasFrames(const SamplePlan& plan) const;
  bool HasWindows(const SamplePlan& plan) const;

  const Parts parts_;
  const bool makes_stacks_;
  const Lists lists_;
  const std::string plan_reads_;  // How messages begin.
  const std::string batch_spec_;
  const std::string apply_;
  const std::string enqueue_;
};

std::vector<UnitTransform::Joined> RowArithmeticTransform::JoinedLeaves(
    const TensorDictSpec& rows) const {
  std::vector<Joined> joined;
  if (!parts_.frames.has_value() || !makes_stacks_ ||
      !parts_.frames->JoinsFrames(rows)) {
    return joined;
  }
  for (const std::string& key : parts_.frames->options().keys) {
    // A mark is read to be marked too.
    // The caller puts joined leaves together itself, without this class, so it
    // cannot mark them.
    if (IsMark(key)) return {};
    joined.push_back({key, parts_.frames->PartsOf(key)});
  }
  return joined;
}

absl::Status RowArithmeticTransform::JoinedSlots(
    const SamplePlan& plan, const Joined& joined,
    std::vector<Slot>* slots) const {
  const auto list = [&](int number) {
    return number < 0 ? nullptr : &plan.context[static_cast<size_t>(number)];
  };
  RILL_RETURN_IF_ERROR(transforms_internal::CheckLists(
      apply_, plan, static_cast<size_t>(lists_.count)));
  RILL_RETURN_IF_ERROR(CheckPlan(plan));
  parts_.frames->JoinedSlots(
      plan, *list(lists_.frames_before), list(lists_.steps_behind),
      list(lists_.window_ends), num_steps(), joined.key, slots);
  return absl::OkStatus();
}

std::unique_ptr<UnitTransform> RowArithmeticTransform::WithoutJoined() const {
  // The same parts, which neither read nor make stacked leaves.
  return std::make_unique<RowArithmeticTransform>(parts_,
                                                  /*makes_stacks=*/false);
}

// The layout has to be the parts' own: a unit with other numbers of frames or
// steps would be read at wrong places.
absl::Status RowArithmeticTransform::CheckLayout(
    const PlanLayout& plans) const {
  PlanLayout wanted;
  if (parts_.frames.has_value()) {
    wanted.context.push_back({PlanLayout::kFramesBefore, num_frames() - 1});
  }
  if (parts_.n_step.has_value()) {
    wanted.context.push_back({PlanLayout::kStepsBehind, num_steps() - 1});
    wanted.context.push_back({PlanLayout::kWindowEnds, 1});
  }
  if (plans.context != wanted.context) {
    return InvalidArgument(
        name(), ": rows beside those of the batch: got a unit that plans ",
        plans.ContextString(), ", want ", wanted.ContextString());
  }
  if (!parts_.sequence_marks.has_value()) return absl::OkStatus();
  return parts_.sequence_marks->CheckLayout(name(), plans);
}

absl::Status RowArithmeticTransform::CheckRows(
    absl::string_view caller, const TensorDictSpec& rows) const {
  if (parts_.n_step.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.n_step->CheckRows(caller, rows));
  }
  if (parts_.frames.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.frames->CheckRows(caller, rows));
  }
  if (parts_.slice_marks.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.slice_marks->CheckRows(caller, rows));
  }
  if (parts_.sequence_marks.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.sequence_marks->CheckRows(caller, rows));
  }
  return absl::OkStatus();
}

// Marks are read apart: a batch that is used again holds those that are not
// stored too. Flags that windows sum say by the rows behind them whether they
// are stored.
absl::StatusOr<UnitTransform::Reads> RowArithmeticTransform::PlanReads(
    const TensorDictSpec& rows) const {
  RILL_RETURN_IF_ERROR(CheckRows(plan_reads_, rows));
  Reads reads;
  reads.context.resize(static_cast<size_t>(lists_.count));
  std::set<std::string> behind;
  for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
    // The caller makes these leaves.
    if (!makes_stacks_ && IsStacked(leaf.key)) continue;
    const bool is_summed = IsSummed(leaf.key);
    // With windows a leaf below next is that of the window's last row, so that
    // of the row itself is not read. Sums are an exception: they need every
    // row.
    const bool is_of_end =
        parts_.n_step.has_value() && IsNext(leaf.key) && !is_summed;
    Reads::List& list =
        is_of_end ? reads.context[static_cast<size_t>(lists_.window_ends)]
                  : reads.rows;
    const bool is_apart =
        IsStacked(leaf.key) || (IsMark(leaf.key) && !is_summed);
    (is_apart ? list.apart : list.batch).push_back(leaf.key);
    // Stacks are made of leaves that are not stacked themselves too.
    if (!is_summed && !IsMark(leaf.key) && !has_stacks()) {
      list.untouched.push_back(leaf.key);
    }
    // Rewards and flags are needed of each step of a window.
    if (is_summed) behind.insert(leaf.key);
  }
  if (parts_.frames.has_value() && makes_stacks_) {
    const std::set<std::string> before = parts_.frames->KeysBefore();
    reads.context[static_cast<size_t>(lists_.frames_before)].apart.assign(
        before.begin(), before.end());
    // Stacks of "next" leaves that end behind the draw need frames from there.
    behind.merge(parts_.frames->KeysBehind());
  }
  if (parts_.n_step.has_value()) {
    reads.context[static_cast<size_t>(lists_.steps_behind)].apart.assign(
        behind.begin(), behind.end());
  }
  return reads;
}

absl::StatusOr<TensorDictSpec> RowArithmeticTransform::BatchSpec(
    const TensorDictSpec& rows) const {
  RILL_RETURN_IF_ERROR(CheckRows(batch_spec_, rows));
  TensorDictSpec batch = rows;
  if (parts_.n_step.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.n_step->ExtendSpec(rows, &batch));
  }
  if (parts_.frames.has_value() && makes_stacks_) {
    RILL_RETURN_IF_ERROR(parts_.frames->ExtendSpec(batch_spec_, rows, &batch));
  } else if (parts_.frames.has_value()) {
    for (const std::string& key : parts_.frames->options().keys) {
      batch.Erase(key);
    }
  }
  if (parts_.slice_marks.has_value()) {
    RILL_RETURN_IF_ERROR(
        parts_.slice_marks->ExtendSpec(batch_spec_, rows, &batch));
  }
  if (parts_.sequence_marks.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.sequence_marks->ExtendSpec(&batch));
  }
  return batch;
}

// As many frames before each draw as stacks need: N - 1 a draw, in the order of
// draws. StackFrames indexes them by that.
bool RowArithmeticTransform::HasFrames(const SamplePlan& plan) const {
  if (lists_.frames_before < 0) return true;
  const SamplePlan::Context& list =
      plan.context[static_cast<size_t>(lists_.frames_before)];
  const size_t before = static_cast<size_t>(num_frames() - 1);
  if (before == 0) return list.rows.empty();
  if (list.rows.size() % before != 0 ||
      list.rows.size() / before != plan.draws.size()) {
    return false;
  }
  for (size_t i = 0; i < list.rows.size(); ++i) {
    if (list.segments[i] != static_cast<int64_t>(i / before)) return false;
  }
  return true;
}

// No window is longer than n, and its end is the last of its rows. Each end is
// compared by its slot: a list of other ends is found here.
bool RowArithmeticTransform::HasWindows(const SamplePlan& plan) const {
  if (lists_.steps_behind < 0) return true;
  const SamplePlan::Context& list =
      plan.context[static_cast<size_t>(lists_.steps_behind)];
  const SamplePlan::Context& ends =
      plan.context[static_cast<size_t>(lists_.window_ends)];
  if (!list.mask.empty() || !ends.mask.empty() ||
      static_cast<int64_t>(ends.rows.size()) !=
          transforms_internal::NumRows(plan)) {
    return false;
  }
  DrawWalk walk(plan, &list);
  for (DrawRows rows; walk.Next(&rows);) {
    if (rows.num_behind >= num_steps()) return false;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      // The position of the window's last row: n - 1 behind, or the last of the
      // run.
      const int64_t end =
          std::min(rows.PositionOf(row) + num_steps(), rows.num_positions()) -
          1;
      Slot slot = 0;
      // That row is in the list behind, is the draw itself, or is a row of the
      // draw.
      if (end >= rows.num_real()) {
        slot =
            list.rows[static_cast<size_t>(rows.behind + end - rows.num_real())];
      } else if (plan.rows.empty()) {
        slot = plan.draws[static_cast<size_t>(rows.draw)].slot;
      } else {
        slot = plan.rows[static_cast<size_t>(rows.first + end)];
      }
      const size_t at = static_cast<size_t>(row);
      if (ends.segments[at] != rows.draw || ends.rows[at] != slot) return false;
    }
  }
  return true;
}

// Plans come from a sampler, and a wrong one would read out of bounds. O(rows).
absl::Status RowArithmeticTransform::CheckPlan(const SamplePlan& plan) const {
  const bool needs_draws =
      lists_.count > 0 || parts_.sequence_marks.has_value();
  if (!needs_draws || (transforms_internal::HasWholeDraws(plan) &&
                       HasFrames(plan) && HasWindows(plan))) {
    return absl::OkStatus();
  }
  size_t beside = 0;
  for (const SamplePlan::Context& list : plan.context) {
    beside += list.rows.size();
  }
  return Internal(
      apply_, ": plan: got ", transforms_internal::NumRows(plan), " rows of ",
      plan.draws.size(), " draws and ", beside, " rows beside them, want ",
      num_frames() - 1, " frames before each draw, at most ", num_steps() - 1,
      " steps behind it, the last row of each window, and in each draw no "
      "padding between rows");
}

RowArithmeticTransform::Input RowArithmeticTransform::InputOf(
    const SamplePlan& plan, const TensorDict& rows,
    absl::Span<const TensorDict> context) const {
  // Without windows the end of a window is the row itself: `ends` is `rows`.
  Input input;
  const TensorDict* ends = &rows;
  if (parts_.n_step.has_value()) {
    input.steps = &plan.context[static_cast<size_t>(lists_.steps_behind)];
    input.behind = &context[static_cast<size_t>(lists_.steps_behind)];
    ends = &context[static_cast<size_t>(lists_.window_ends)];
  }
  if (!has_stacks()) return input;
  const size_t list = static_cast<size_t>(lists_.frames_before);
  input.frames = {.plan = &plan,
                  .frames = &plan.context[list],
                  .steps = input.steps,
                  .num_steps = num_steps(),
                  .rows = &rows,
                  .before = &context[list],
                  .behind = input.behind,
                  .ends = ends};
  return input;
}

absl::Status RowArithmeticTransform::Apply(const SamplePlan& plan,
                                           const TensorDict& rows,
                                           absl::Span<const TensorDict> context,
                                           TensorDict* batch) const {
  RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(
      apply_, plan, static_cast<size_t>(lists_.count), rows, context, *batch));
  RILL_RETURN_IF_ERROR(CheckPlan(plan));
  const Input input = InputOf(plan, rows, context);
  // Stacks first: they read root frames from the batch, which no part has
  // changed yet.
  if (has_stacks()) {
    RILL_RETURN_IF_ERROR(parts_.frames->Apply(apply_, input.frames, batch));
  }
  // Sums before marks of slices: marks go into the flags that sums have set.
  if (parts_.n_step.has_value()) {
    RILL_RETURN_IF_ERROR(
        parts_.n_step->Apply(apply_, plan, *input.steps, *input.behind, batch));
  }
  if (parts_.slice_marks.has_value()) {
    RILL_RETURN_IF_ERROR(
        parts_.slice_marks->Apply(apply_, plan, rows, input.behind, batch));
  }
  if (parts_.sequence_marks.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.sequence_marks->Apply(apply_, plan, batch));
  }
  return absl::OkStatus();
}

// The order of the parts is Apply's.
absl::Status RowArithmeticTransform::Enqueue(
    const SamplePlan& plan, const TensorDict& rows,
    absl::Span<const TensorDict> context, StreamUploads* uploads,
    TensorDict* batch) const {
  RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(
      enqueue_, plan, static_cast<size_t>(lists_.count), rows, context, *batch,
      /*may_have_more_rows=*/true));
  RILL_RETURN_IF_ERROR(CheckPlan(plan));
  const Input input = InputOf(plan, rows, context);
  UnitWork work(enqueue_, uploads);
  if (has_stacks()) {
    RILL_RETURN_IF_ERROR(
        parts_.frames->Enqueue(enqueue_, input.frames, &work, batch));
  }
  if (parts_.n_step.has_value()) {
    RILL_RETURN_IF_ERROR(parts_.n_step->Enqueue(enqueue_, plan, *input.steps,
                                                *input.behind, &work, batch));
  }
  if (parts_.slice_marks.has_value()) {
    RILL_RETURN_IF_ERROR(
        parts_.slice_marks->Enqueue(plan, rows, input.behind, &work, batch));
  }
  if (parts_.sequence_marks.has_value()) {
    RILL_RETURN_IF_ERROR(
        parts_.sequence_marks->Enqueue(enqueue_, plan, &work, batch));
  }
  work.Leave();
  return absl::OkStatus();
}

absl::Status Contradiction(absl::string_view what, absl::string_view got,
                           absl::string_view want) {
  return InvalidArgument("RowArithmetic::Create: ", what, ": got \"", got,
                         "\", want ", want);
}

// A leaf is summed or stacked, and the flags that slices mark are those that
// windows end with. Else two parts would write one leaf.
absl::Status CheckTogether(const RowArithmetic::Options& options,
                           const Parts& parts) {
  if (!options.n_step.has_value()) return absl::OkStatus();
  const NStepReturns::Options& n_step = *options.n_step;
  if (options.frames.has_value()) {
    for (const std::string& key : options.frames->keys) {
      if (parts.n_step->IsSummed(key)) {
        return Contradiction("frames and n_step", key,
                             "other leaves stacked than are summed");
      }
    }
  }
  if (!options.slice_marks.has_value()) return absl::OkStatus();
  const SliceMarks::Options& marks = *options.slice_marks;
  for (const auto& [mark, flag] :
       {std::pair(&marks.truncated_key, &n_step.truncated_key),
        std::pair(&marks.terminated_key, &n_step.terminated_key),
        std::pair(&marks.done_key, &n_step.done_key)}) {
    if (*mark != *flag) {
      return Contradiction("keys of slice_marks and n_step", *mark,
                           absl::StrCat("\"", *flag, "\" in both"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> RowArithmetic::Create(
    const Options& options) {
  Parts parts;
  if (options.n_step.has_value()) {
    RILL_ASSIGN_OR_RETURN(parts.n_step, NStepReturns::Create(*options.n_step));
  }
  if (options.frames.has_value()) {
    RILL_ASSIGN_OR_RETURN(parts.frames, StackFrames::Create(*options.frames));
  }
  if (options.slice_marks.has_value()) {
    RILL_ASSIGN_OR_RETURN(parts.slice_marks,
                          SliceMarks::Create(*options.slice_marks));
  }
  if (options.sequence_marks.has_value()) {
    RILL_ASSIGN_OR_RETURN(parts.sequence_marks,
                          SequenceMarks::Create(*options.sequence_marks));
  }
  RILL_RETURN_IF_ERROR(CheckTogether(options, parts));
  return std::make_unique<RowArithmeticTransform>(std::move(parts));
}

}  // namespace rill
