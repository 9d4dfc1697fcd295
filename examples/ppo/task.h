// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_TASK_H_
#define RILL_EXAMPLES_PPO_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/examples/ppo/config.h"

namespace rill::ppo {

// What is to be learned, and how. Observations are [n] of float32 or float64;
// the action is one number out of n, or n bounded numbers.
struct Task {
  std::string program;  // The name of the program that learns it.
  Config defaults = {};
  std::function<absl::StatusOr<std::unique_ptr<Env>>(int64_t lanes,
                                                     uint64_t seed)>
      make_env = nullptr;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_TASK_H_
