// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_END_OF_LIFE_H_
#define RILL_TRANSFORMS_ENV_END_OF_LIFE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Says where a life was lost, for losses that take it as an end. The leaf
// eol_key is true below next where there are fewer lives than at the root, or
// the episode is done. After a reset it is false. The episode goes on.
// TorchRL's EndOfLifeTransform; the lives are a leaf of the observation.
//
// Shapes: lives of any integer dtype, [lanes] or [lanes, 1]; flags bool
//   [lanes, 1].
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable.
//
// Example (EndOfLifeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto end_of_life,
//                         EndOfLife::Create({.lives_key = "ram/lives"}));
class EndOfLife {
 public:
  struct Options {
    std::string eol_key = "end-of-life";
    std::string lives_key = "lives";
    std::string done_key = "done";  // Below next.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ENV_END_OF_LIFE_H_
