// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_
#define RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/option_values.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

namespace transforms_internal {
class UnitWork;
}  // namespace transforms_internal

// Marks each row of a batch of sequences. A sequence has burn_in rows before an
// anchor, `length` rows to learn from that begin with it, and `bootstrap` rows
// behind those. TorchRL's Sequence unit reports the same.
//
// A part of RowArithmetic. Each draw has burn_in rows, and then 1 to length +
// bootstrap rows: fewer where sequences end with their trajectory
// (SequenceEnd::kStop).
//
// Adds, all [R]:
//   sequence_id       int64  which draw
//   step_in_sequence  int64  0 .. burn_in + length + bootstrap - 1
//   learning_mask     bool   neither burn-in nor bootstrap
//   validity_mask     bool   no padding
//   anchor_index      int64  the slot of the draw
//
// Thread-safety: immutable.
class SequenceMarks {
 public:
  struct Options {
    int64_t length = 1;     // >= 1. Each at most 2^30.
    int64_t burn_in = 0;    // >= 0.
    int64_t bootstrap = 0;  // >= 0.
    // Steps from one row to the next, >= 1. Not in option_values: it is that of
    // the unit, which has it there.
    int64_t dilation = 1;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<SequenceMarks> Create(const Options& options);

  const Options& options() const { return options_; }
  // As Transform::option_values.
  OptionValues option_values() const;

  // The rest is RowArithmetic's; `caller` starts the messages.

  // INVALID_ARGUMENT where the draws of the plans have other rows.
  absl::Status CheckLayout(absl::string_view caller,
                           const PlanLayout& plans) const;
  // INVALID_ARGUMENT where it cannot work on such rows.
  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const;
  absl::Status ExtendSpec(TensorDictSpec* batch) const;
  absl::Status Apply(absl::string_view caller, const SamplePlan& plan,
                     TensorDict* batch) const;
  // The same on a device: the marks are numbers of the plan, which the host
  // makes and sends.
  absl::Status Enqueue(absl::string_view caller, const SamplePlan& plan,
                       transforms_internal::UnitWork* work,
                       TensorDict* batch) const;

 private:
  // Where the marks of the rows go.
  struct Marks {
    int64_t* ids = nullptr;
    int64_t* steps = nullptr;
    bool* learning = nullptr;
    bool* validity = nullptr;
    int64_t* anchors = nullptr;
  };
  absl::Status Fill(absl::string_view caller, const SamplePlan& plan,
                    const Marks& marks) const;

  explicit SequenceMarks(const Options& options) : options_(options) {}

  int64_t total() const {
    return options_.burn_in + options_.length + options_.bootstrap;
  }

  Options options_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_
