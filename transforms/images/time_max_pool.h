// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_TIME_MAX_POOL_H_
#define RILL_TRANSFORMS_IMAGES_TIME_MAX_POOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Beside an environment, of each element the largest of the last T values of
// its episode; of fewer where it has run for fewer steps. TorchRL's
// TimeMaxPool, which takes 0 for the values before the first. It is no
// transform of batches: rows of a batch need not have their past with them.
//
// The value before the newest is that of the root. With T > 2 the T - 2 before
// it are in the data, at "<out_key>_before" [T - 2, ...] of the root and below
// next. So they are saved with the steps; a later transform may drop them.
//
// Shapes: leaves of uint8, float32 or float64, which keep their shape.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; the state is in the data.
// Numerics: a NaN stays as long as it is among the T.
// Cost: O(T) a step, by vectors for uint8 and float32.
//
// Example (TimeMaxPoolTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto pool, TimeMaxPool::Create(
//       {.num_steps = 2, .in_keys = {"pixels"}}));
class TimeMaxPool {
 public:
  struct Options {
    int64_t num_steps = 1;  // T, in [1, 2^20]. 1 copies.
    // Keys of the root; each stands for the one below next too.
    std::vector<std::string> in_keys = {"observation"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_TIME_MAX_POOL_H_
