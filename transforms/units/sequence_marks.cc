// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/sequence_marks.h"

#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/draw_rows.h"
#include "rill/transforms/units/draw_walk.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::DrawRows;
using transforms_internal::DrawWalk;
using transforms_internal::WriteLeaf;

constexpr absl::string_view kSequenceId = "sequence_id";
constexpr absl::string_view kStep = "step_in_sequence";
constexpr absl::string_view kLearning = "learning_mask";
constexpr absl::string_view kValidity = "validity_mask";
constexpr absl::string_view kAnchor = "anchor_index";
// Three of these and their sum stay far below 2^63.
constexpr int64_t kMaxRows = int64_t{1} << 30;

absl::Status CheckCount(absl::string_view option, int64_t got, int64_t least) {
  if (got >= least && got <= kMaxRows) return absl::OkStatus();
  return InvalidArgument("SequenceMarks::Create: ", option, ": got ", got,
                         ", want ", least, " .. 2^30");
}

}  // namespace

absl::Status SequenceMarks::CheckLayout(absl::string_view caller,
                                        const PlanLayout& plans) const {
  if (plans.burn_in == options_.burn_in && plans.length == options_.length &&
      plans.bootstrap == options_.bootstrap) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      caller, ": burn_in, length and bootstrap of SequenceMarks: got ",
      options_.burn_in, ", ", options_.length, " and ", options_.bootstrap,
      ", want the unit's ", plans.burn_in, ", ", plans.length, " and ",
      plans.bootstrap);
}

OptionValues SequenceMarks::option_values() const {
  return OptionValues()
      .Int("length", options_.length)
      .Int("burn_in", options_.burn_in)
      .Int("bootstrap", options_.bootstrap);
}

absl::Status SequenceMarks::CheckRows(absl::string_view caller,
                                      const TensorDictSpec& rows) const {
  for (const absl::string_view key :
       {kSequenceId, kStep, kLearning, kValidity, kAnchor}) {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsNew(caller, key, rows));
  }
  return absl::OkStatus();
}

// A row of these is a scalar, unlike TED's flags, which are [1].
absl::Status SequenceMarks::ExtendSpec(TensorDictSpec* batch) const {
  const LeafSpec number = LeafSpec::Unbounded(DType::kInt64, {});
  RILL_RETURN_IF_ERROR(batch->Set(kSequenceId, number));
  RILL_RETURN_IF_ERROR(batch->Set(kStep, LeafSpec::Categorical(total())));
  RILL_RETURN_IF_ERROR(batch->Set(kLearning, LeafSpec::Binary({})));
  RILL_RETURN_IF_ERROR(batch->Set(kValidity, LeafSpec::Binary({})));
  return batch->Set(kAnchor, number);
}

absl::Status SequenceMarks::Apply(absl::string_view caller,
                                  const SamplePlan& plan,
                                  TensorDict* batch) const {
  const Shape shape = batch->batch_shape();
  RILL_ASSIGN_OR_RETURN(const Tensor ids,
                        WriteLeaf(kSequenceId, DType::kInt64, shape,
                                  {.is_passed_in = true}, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor steps,
      WriteLeaf(kStep, DType::kInt64, shape, {.is_passed_in = true}, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor learning,
      WriteLeaf(kLearning, DType::kBool, shape, {.is_passed_in = true}, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor validity,
      WriteLeaf(kValidity, DType::kBool, shape, {.is_passed_in = true}, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor anchors,
      WriteLeaf(kAnchor, DType::kInt64, shape, {.is_passed_in = true}, batch));
  return Fill(caller, plan,
              {.ids = ids.data<int64_t>(),
               .steps = steps.data<int64_t>(),
               .learning = learning.data<bool>(),
               .validity = validity.data<bool>(),
               .anchors = anchors.data<int64_t>()});
}

absl::Status SequenceMarks::Enqueue(absl::string_view caller,
                                    const SamplePlan& plan,
                                    transforms_internal::UnitWork* work,
                                    TensorDict* batch) const {
  const Shape shape = batch->batch_shape();
  const auto room = [&]<typename T>(absl::string_view key, DType dtype,
                                    T** values) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                          work->Write(key, dtype, shape, batch));
    RILL_ASSIGN_OR_RETURN(*values,
                          work->uploads().Room(shape[0], leaf.data<T>()));
    return absl::OkStatus();
  };
  Marks marks;
  RILL_RETURN_IF_ERROR(room(kSequenceId, DType::kInt64, &marks.ids));
  RILL_RETURN_IF_ERROR(room(kStep, DType::kInt64, &marks.steps));
  RILL_RETURN_IF_ERROR(room(kLearning, DType::kBool, &marks.learning));
  RILL_RETURN_IF_ERROR(room(kValidity, DType::kBool, &marks.validity));
  RILL_RETURN_IF_ERROR(room(kAnchor, DType::kInt64, &marks.anchors));
  return Fill(caller, plan, marks);
}

absl::Status SequenceMarks::Fill(absl::string_view caller,
                                 const SamplePlan& plan,
                                 const Marks& marks) const {
  DrawWalk walk(plan, nullptr);
  for (DrawRows rows; walk.Next(&rows);) {
    // The unit plans all rows of the burn-in, and at least one to learn from.
    const int64_t count = rows.end - rows.begin;
    if (count <= options_.burn_in || count > total()) {
      return Internal(caller, ": plan: got ", count, " rows of draw ",
                      rows.draw, ", want ", options_.burn_in + 1, " to ",
                      total());
    }
    // Rows that pad count as steps too: learning_mask says which part of the
    // sequence a row is of, validity_mask whether it is real.
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t step = row - rows.begin;
      marks.ids[row] = rows.draw;
      marks.steps[row] = step;
      marks.learning[row] =
          step >= options_.burn_in && step < options_.burn_in + options_.length;
      marks.validity[row] =
          plan.mask.empty() || plan.mask[static_cast<size_t>(row)] != 0;
      marks.anchors[row] = plan.draws[static_cast<size_t>(rows.draw)].slot;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SequenceMarks> SequenceMarks::Create(const Options& options) {
  RILL_RETURN_IF_ERROR(CheckCount("length", options.length, 1));
  RILL_RETURN_IF_ERROR(CheckCount("burn_in", options.burn_in, 0));
  RILL_RETURN_IF_ERROR(CheckCount("bootstrap", options.bootstrap, 0));
  RILL_RETURN_IF_ERROR(CheckCount("dilation", options.dilation, 1));
  return SequenceMarks(options);
}

}  // namespace rill
