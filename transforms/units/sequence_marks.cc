// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/sequence_marks.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/units/unit_input.h"

namespace rill {
namespace {

using transforms_internal::OutputLeaf;

constexpr absl::string_view kSequenceId = "sequence_id";
constexpr absl::string_view kStep = "step_in_sequence";
constexpr absl::string_view kLearning = "learning_mask";
constexpr absl::string_view kValidity = "validity_mask";
constexpr absl::string_view kAnchor = "anchor_index";
constexpr absl::string_view kApply = "SequenceMarks::Apply";
constexpr int64_t kMaxRows = int64_t{1} << 30;

class SequenceMarksTransform final : public UnitTransform {
 public:
  explicit SequenceMarksTransform(const SequenceMarks::Options& options)
      : options_(options),
        total_(options.burn_in + options.length + options.bootstrap) {}

  absl::string_view name() const override { return "SequenceMarks"; }

  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows("SequenceMarks::PlanReads", rows));
    Reads reads;
    for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
      reads.rows.batch.push_back(leaf.key);
    }
    return reads;
  }

  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows("SequenceMarks::BatchSpec", rows));
    TensorDictSpec batch = rows;
    const LeafSpec number = LeafSpec::Unbounded(DType::kInt64, {});
    RILL_RETURN_IF_ERROR(batch.Set(kSequenceId, number));
    RILL_RETURN_IF_ERROR(batch.Set(kStep, LeafSpec::Categorical(total_)));
    RILL_RETURN_IF_ERROR(batch.Set(kLearning, LeafSpec::Binary({})));
    RILL_RETURN_IF_ERROR(batch.Set(kValidity, LeafSpec::Binary({})));
    RILL_RETURN_IF_ERROR(batch.Set(kAnchor, number));
    return batch;
  }

  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(kApply, plan, 0, rows,
                                                         context, *batch));
    RILL_RETURN_IF_ERROR(CheckSequences(plan));
    const Shape& shape = batch->batch_shape();
    RILL_ASSIGN_OR_RETURN(const Tensor ids,
                          OutputLeaf(kSequenceId, DType::kInt64, shape, batch));
    RILL_ASSIGN_OR_RETURN(const Tensor steps,
                          OutputLeaf(kStep, DType::kInt64, shape, batch));
    RILL_ASSIGN_OR_RETURN(const Tensor learning,
                          OutputLeaf(kLearning, DType::kBool, shape, batch));
    RILL_ASSIGN_OR_RETURN(const Tensor validity,
                          OutputLeaf(kValidity, DType::kBool, shape, batch));
    RILL_ASSIGN_OR_RETURN(const Tensor anchors,
                          OutputLeaf(kAnchor, DType::kInt64, shape, batch));
    int64_t row = 0;
    for (size_t draw = 0; draw < plan.draws.size(); ++draw) {
      for (int64_t step = 0; step < total_; ++step, ++row) {
        ids.data<int64_t>()[row] = static_cast<int64_t>(draw);
        steps.data<int64_t>()[row] = step;
        learning.data<bool>()[row] = step >= options_.burn_in &&
                                     step < options_.burn_in + options_.length;
        validity.data<bool>()[row] =
            plan.mask.empty() || plan.mask[static_cast<size_t>(row)] != 0;
        anchors.data<int64_t>()[row] = plan.draws[draw].slot;
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckRows(absl::string_view caller,
                                const TensorDictSpec& rows) {
    for (const absl::string_view key :
         {kSequenceId, kStep, kLearning, kValidity, kAnchor}) {
      RILL_RETURN_IF_ERROR(transforms_internal::CheckIsNew(caller, key, rows));
    }
    return absl::OkStatus();
  }

  // That each draw has `total_` rows; with one, the plan may be of rows or of
  // draws.
  absl::Status CheckSequences(const SamplePlan& plan) const {
    const int64_t rows = transforms_internal::NumRows(plan);
    bool is_right = rows % total_ == 0 &&
                    rows / total_ == static_cast<int64_t>(plan.draws.size());
    for (int64_t row = 0; is_right && row < rows; ++row) {
      is_right = transforms_internal::DrawOf(plan, row) == row / total_;
    }
    if (is_right) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(kApply, ": plan: got ", rows, " rows for ",
                     plan.draws.size(), " draws, want ", total_, " for each"));
  }

  const SequenceMarks::Options options_;
  const int64_t total_;
};

absl::Status CheckCount(absl::string_view option, int64_t got, int64_t least) {
  if (got >= least && got <= kMaxRows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("SequenceMarks::Create: ", option, ": got ", got, ", want ",
                   least, " .. 2^30"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> SequenceMarks::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckCount("length", options.length, 1));
  RILL_RETURN_IF_ERROR(CheckCount("burn_in", options.burn_in, 0));
  RILL_RETURN_IF_ERROR(CheckCount("bootstrap", options.bootstrap, 0));
  return std::make_unique<SequenceMarksTransform>(options);
}

}  // namespace rill
