// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_ENVS_DOC_EXAMPLES_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/lane_env.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/policies/policy_critic.h"
#include "rill/envs/rollout.h"
#include "rill/envs/transformed_env.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern std::unique_ptr<Env>& env;
extern Policy& policy;

// policies/policy_critic.h
extern const TensorDict states;
extern Tensor values;

// lane_env.h
extern EnvSpec& spec;
absl::StatusOr<std::unique_ptr<Lane>> MakeWalker(const TensorDict& row);

// device/device_env.h
extern std::unique_ptr<DeviceSimulator>& simulator;

struct MineOptions {
  int64_t lanes = 1;
};
absl::StatusOr<std::unique_ptr<Env>> MakeMine(const MineOptions& options);

}  // namespace rill::doc_examples

#endif  // RILL_ENVS_DOC_EXAMPLES_CONTEXT_H_
