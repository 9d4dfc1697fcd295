// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_
#define RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// A row becomes the n steps that begin with it: the reward is r_0 + gamma r_1 +
// ... + gamma^(k-1) r_(k-1) over the k <= n steps of its window, and all else
// below "next", the flags too, is that of the last of them. For a value target,
// r + gamma_key * V(next) where not terminated.
//
// The unit cuts windows at the ends of trajectories. A step that is terminated
// ends the sum too, wherever it stands, and then the flags are its own, while
// other leaves of "next" stay those of the planned window's last row: no
// target looks at them. Where rows have no terminated_key, done_key says it.
//
// Plan: rows empty; context[0] the rows behind each draw in its window, oldest
//   first, at most n - 1; context[1] the last row of each window.
// Adds: steps_key int64 [B, 1], k; gamma_key float32 [B, 1], gamma^k.
// Shapes: rewards float32 or float64 of any shape; flags bool [1], each of them
//   may be missing.
// Numerics: powers of gamma are products in double. float32 rewards take them
//   rounded to float32, are summed in double, in order, and rounded once; the
//   same on every machine.
// Differs from TorchRL's MultiStep: the flags follow the window, so that a
//   target never bootstraps through a terminal state, and the own reward is not
//   kept ("original_reward", "nonterminal").
// Cost: O(rows of context), and each needed byte is read once: the batch's own
//   next observation is not.
//
// Example (NStepReturnsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto returns,
//                         NStepReturns::Create({.num_steps = 3, .gamma =
//                         0.9}));
class NStepReturns {
 public:
  struct Options {
    int64_t num_steps = 1;  // In [1, 2^20]. 1 changes no stored leaf.
    double gamma = 0.99;    // In (0, 1].
    std::vector<std::string> reward_keys = {"next/reward"};
    std::string terminated_key = "next/terminated";
    std::string truncated_key = "next/truncated";
    std::string done_key = "next/done";
    std::string steps_key = "steps_to_next_obs";
    std::string gamma_key = "gamma";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_
