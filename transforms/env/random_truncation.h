// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_RANDOM_TRUNCATION_H_
#define RILL_TRANSFORMS_ENV_RANDOM_TRUNCATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Cuts episodes beside an environment at random lengths, so that lanes that
// began together do not end together. Comes behind a StepCounter. TorchRL's
// RandomTruncationTransform.
//
// The first episode of a lane has a horizon that is uniform in [1,
// max_horizon]. Each later one has, with probability `prob`, one that is
// uniform in [min_horizon, max_horizon], else max_horizon. An episode that has
// run for its horizon ends: next/truncated and next/done become true.
//
// Shapes: the count int64 [lanes, 1] below next; the flags bool [lanes, 1].
// Thread-safety: immutable. State: draws and horizons of the lanes, int64
//   [lanes, 1]. FAILED_PRECONDITION where a call gets that of other lanes.
//
// Example (RandomTruncationTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto truncation,
//                         RandomTruncation::Create({.min_horizon = 50,
//                                                   .max_horizon = 200,
//                                                   .prob = 0.1}));
class RandomTruncation {
 public:
  struct Options {
    int64_t min_horizon = 1;  // > 0.
    int64_t max_horizon = 0;  // >= min_horizon.
    double prob = 0;          // In [0, 1].
    // For the second episode of a lane; none: prob.
    std::optional<double> first_episode_prob = std::nullopt;
    uint64_t seed = 0;
    // Below next.
    std::string step_count_key = "step_count";
    std::string truncated_key = "truncated";
    std::string done_key = "done";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ENV_RANDOM_TRUNCATION_H_
