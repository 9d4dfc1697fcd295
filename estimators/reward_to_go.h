// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_REWARD_TO_GO_H_
#define RILL_ESTIMATORS_REWARD_TO_GO_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Each step's discounted sum of rewards up to the end of its trajectory, before
// writes; TorchRL's Reward2GoTransform. Steps behind the last end of a batch
// get the sum up to the batch's, so write whole trajectories. (TorchRL refuses
// a batch with a line that has no end.)
//
// Shapes: batches [*B, T], time in the last dimension; rewards [*B, T, 1]
//   float32 or float64, flags bool [*B, T, 1].
// Pieces: as those of value_estimators.h. Where slices or sequences are cut the
//   sum is that up to the cut.
// Thread-safety: immutable, without a state.
// Cost: O(steps); results are new tensors.
//
// Example (RewardToGoTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto to_go, Reward2Go::Create({.gamma = 0.99}));
struct Reward2Go {
  struct Options {
    double gamma = 1;  // In [0, 1].
    std::vector<std::string> in_keys = {"next/reward"};
    // For each of in_keys; empty: in_keys. One may be another of in_keys: all
    // rewards are summed before a sum is set.
    std::vector<std::string> out_keys = {};
    std::string done_key = "next/done";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

// The same after reads, to spread a reward that is given at an end over the
// trajectory before it; TorchRL's DensifyReward.
//
// Example (RewardToGoTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto densify, DensifyReward::Create({}));
struct DensifyReward {
  struct Options {
    std::string reward_key = "next/reward";
    std::string done_key = "next/done";
    std::string reward_key_out = "";  // Empty: reward_key.
    double discount = 1;              // In [0, 1].
  };

  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_ESTIMATORS_REWARD_TO_GO_H_
