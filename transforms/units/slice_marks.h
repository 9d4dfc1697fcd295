// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_
#define RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/option_values.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

namespace transforms_internal {
class UnitWork;
}  // namespace transforms_internal

// Says in the flags where a batch of slices was cut. The last real row of each
// slice is truncated and done, also where it is terminated; terminated is the
// stored flag. The first real row of each slice is an initial one. So losses
// over the flat batch do not run from a slice into the next. TorchRL's
// truncated_key.
//
// A part of RowArithmetic, over slices, trajectories or single rows, each of
// which is then a slice.
//
// Adds: what is not stored of the three flags below "next": no truncation, no
//   termination, and done where either is. Never is_init: without the stored
//   one, a reset inside a slice would not show.
// Shapes: flags bool [1].
// Differs from TorchRL: a truncation that is stored inside a slice stays.
// Thread-safety: immutable.
class SliceMarks {
 public:
  struct Options {
    std::string truncated_key = "next/truncated";
    std::string done_key = "next/done";
    std::string terminated_key = "next/terminated";
    std::string is_init_key = "is_init";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<SliceMarks> Create(const Options& options);

  const Options& options() const { return options_; }
  // As Transform::option_values.
  OptionValues option_values() const;

  // The rest is RowArithmetic's; `caller` starts the messages.

  // INVALID_ARGUMENT where it cannot work on such rows.
  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const;
  bool IsMark(absl::string_view key) const;
  absl::Status ExtendSpec(absl::string_view caller, const TensorDictSpec& rows,
                          TensorDictSpec* batch) const;
  // `rows` has the stored flags, those that are marks. Where `windows` is not
  // null, flags that it has are the batch's already (NStepReturns::Apply).
  absl::Status Apply(absl::string_view caller, const SamplePlan& plan,
                     const TensorDict& rows, const TensorDict* windows,
                     TensorDict* batch) const;
  // The same of leaves on a device; `rows` may have more rows behind.
  absl::Status Enqueue(const SamplePlan& plan, const TensorDict& rows,
                       const TensorDict* windows,
                       transforms_internal::UnitWork* work,
                       TensorDict* batch) const;

 private:
  explicit SliceMarks(const Options& options) : options_(options) {}

  std::array<const std::string*, 4> Marks() const {
    return {&options_.truncated_key, &options_.terminated_key,
            &options_.done_key, &options_.is_init_key};
  }

  Options options_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_
