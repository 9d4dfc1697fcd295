// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_
#define RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// Says in the flags where a batch of slices was cut. The last real row of each
// slice is truncated and done, also where it is terminated; terminated is the
// stored flag. The first real row of each slice is an initial one. So losses
// over the flat batch do not run from a slice into the next. TorchRL's
// truncated_key.
//
// Plan: no context; rows of slices with the draws as segments, mask 0 where a
//   row only pads. Rows empty: each draw is a slice of one row.
// Adds: what is not stored of the three flags below "next": no truncation, no
//   termination, and done where either is. Never is_init: without the stored
//   one, a reset inside a slice would not show.
// Shapes: flags bool [1].
// Differs from TorchRL: a truncation that is stored inside a slice stays.
//
// Example (SliceMarksTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto marks, SliceMarks::Create({}));
class SliceMarks {
 public:
  struct Options {
    std::string truncated_key = "next/truncated";
    std::string done_key = "next/done";
    std::string terminated_key = "next/terminated";
    std::string is_init_key = "is_init";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_SLICE_MARKS_H_
