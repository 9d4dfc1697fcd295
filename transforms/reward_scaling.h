// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_REWARD_SCALING_H_
#define RILL_TRANSFORMS_REWARD_SCALING_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Rewards become reward * scale + loc; with standard_normal (reward - loc) /
// scale. TorchRL's RewardScaling. One beside the environment and one in the
// buffer scale twice: put it in one place.
//
// Shapes: the reward float32 or float64, any shape.
// Thread-safety: immutable.
// Numerics: those of RowStep.
//
// Example (RewardScalingTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto scaling, RewardScaling::Create({.scale = 0.1}));
class RewardScaling final : public RowwiseTransform {
 public:
  struct Options {
    double scale = 1;  // Finite, not 0.
    double loc = 0;    // Finite.
    bool standard_normal = false;
    std::string key = "next/reward";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RewardScaling>> Create(
      const Options& options);

  absl::string_view name() const override { return "RewardScaling"; }
  OptionValues option_values() const override;

 private:
  explicit RewardScaling(Rows rows) : RowwiseTransform(std::move(rows)) {}
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_REWARD_SCALING_H_
