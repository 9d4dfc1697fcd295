// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_VALUE_ESTIMATORS_H_
#define RILL_ESTIMATORS_VALUE_ESTIMATORS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Transforms that write advantages and value targets of batches of steps after
// reads, from rewards and from values that a network has already written. They
// are TorchRL's GAE, TD0Estimator, TD1Estimator, TDLambdaEstimator and VTrace
// without their networks. The arithmetic is that of value_estimates.h.
//
// Shapes: batches [*B, T], time in the last dimension; leaves are [*B, T, 1].
//   Numbers are float32 or float64, all the same; flags are bool. Numbers and
//   results of a group of several agents are [*B, T, agents, 1]. Its flags are
//   too, or the lane's.
// Pieces: no recursion runs from one piece of a line into the next, be it a
//   trajectory, a slice or a sequence (transforms/timeline/timeline.h). Where
//   `done` is missing, `terminated` and `truncated` beside it count.
// Errors: INVALID_ARGUMENT or NOT_FOUND name the key. INVALID_ARGUMENT where
//   the dimensions' names say that the last one is not time. TD0Estimator and a
//   lmbda of 0 look at one step only, and take rows of any order.
//   Leaves of a group alone, such as "next/agents/reward", are several agents'.
// Device/Stream: where the reward lies on a device all leaves do, and results
//   are made there on its current stream, without a wait. They are the host's
//   bit for bit, but that exp in VTrace may differ in the last place on CUDA.
// Thread-safety: immutable, without a state.
// Cost: O(steps); results are made anew where the batch has none to reuse.
//   Those of several agents are always made anew, of copies of each agent's
//   leaves, on a device with waits.
//
// Example (ValueEstimatorsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto gae, GAE::Create({.gamma = 0.99,
//                                                .lmbda = 0.95}));
//   RILL_RETURN_IF_ERROR(gae->Forward(&batch, &state));  // "advantage", ...

// Leaves that are read, but for the last two, which are written.
struct ValueKeys {
  std::string reward = "next/reward";
  std::string value = "state_value";
  std::string next_value = "next/state_value";
  std::string done = "next/done";
  std::string terminated = "next/terminated";
  std::string advantage = "advantage";
  std::string value_target = "value_target";
};

// INVALID_ARGUMENT of each Create names the option; gamma and lmbda are in
// [0, 1].
struct GAE {
  struct Options {
    double gamma = 0.99;
    double lmbda = 0.95;
    // Advantages of the whole batch get mean 0 and standard deviation 1 (at
    // least 1e-4 is divided by); targets stay.
    bool average_gae = false;
    ValueKeys keys = {};
  };
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

// The target is the return, the advantage what it is above the value.
struct TD0Estimator {
  struct Options {
    double gamma = 0.99;
    ValueKeys keys = {};
  };
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

struct TD1Estimator {
  struct Options {
    double gamma = 0.99;
    ValueKeys keys = {};
  };
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

struct TDLambdaEstimator {
  struct Options {
    double gamma = 0.99;
    double lmbda = 0.95;
    ValueKeys keys = {};
  };
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

struct VTrace {
  struct Options {
    double gamma = 0.99;
    double rho_thresh = 1;  // > 0
    double c_thresh = 1;    // > 0
    bool average_adv = false;
    ValueKeys keys = {};
    // Logarithms of the actions' probabilities: now, and when they were chosen.
    std::string log_prob_key = "log_prob";
    std::string sample_log_prob_key = "action_log_prob";
  };
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_ESTIMATORS_VALUE_ESTIMATORS_H_
