// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_NEXT_STATE_RECONSTRUCTOR_H_
#define RILL_TRANSFORMS_NEXT_STATE_RECONSTRUCTOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Makes next observations that were not stored, after a read. next/<key> of a
// row is <key> of the row behind it in the batch, where that is the next step
// of the same trajectory. Else it is the fill value. For batches in order of
// time (slices, sequences), where it is wrong only in the last row of each
// piece; those rows say so by NaN. TorchRL's NextStateReconstructor.
//
// The row behind is the next step unless the trajectory's id changes, the row
// is done, a piece ends (transforms/timeline/timeline.h), or one of the two only
// pads (mask_key). Where done_key is missing, its parts count. Where
// step_count_key is set, the count must go up by one too. Two slices of one
// trajectory that lie side by side differ in nothing else, where they have no
// marks.
//
// Shapes: a batch [..., T], the last dimension is time. Leaves of any dtype and
//   shape; ids of any, flags and mask bool, counts of a dtype with arithmetic;
//   where markers have more elements a row, all ids count, any flag, the first
//   count.
// Errors: INVALID_ARGUMENT names a marker of another dtype, also of a spec, and
//   the leaf of a group whose flags done_key does not name. So
//   too where the dimensions' names say that the last one is not time, unless
//   step_count_key is set.
// Thread-safety: immutable.
// Cost: one copy of each leaf.
//
// Example (NextStateReconstructorTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto reconstructor, NextStateReconstructor::Create(
//       {.keys = {"pixels"}, .fill_value = 0}));
class NextStateReconstructor {
 public:
  struct Options {
    std::vector<std::string> keys = {"observation"};
    // Empty: not looked at.
    std::string traj_key = "collector/traj_ids";
    std::string done_key = "next/done";
    std::string step_count_key = "";
    // Bool, false where a row repeats another to fill a slice: it has no next,
    // and is none. Looked at where the batch has it, which a sampler's has only
    // where some rows pad.
    std::string mask_key = "collector/mask";
    // None: NaN, and leaves of dtypes without NaN are INVALID_ARGUMENT.
    std::optional<double> fill_value = std::nullopt;
    // A marker that the batch lacks is NOT_FOUND; else it is not looked at.
    bool strict = true;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_NEXT_STATE_RECONSTRUCTOR_H_
