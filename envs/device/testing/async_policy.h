// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_ASYNC_POLICY_H_
#define RILL_ENVS_DEVICE_TESTING_ASYNC_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A policy that a test can predict, for leaves on a device and in host memory
// alike. On a device it enqueues what it writes on ActContext::stream and does
// not wait, as one of a neural network.
//
// Action int64 [lanes] in {0, 1}: the parity of 1000 times the lane's first
// observation (float32) and `memory`, which counts the lane's actions 1. It
// writes `log_prob` float32 [1] and the recurrent `next/memory` int64 [1].
class AsyncPolicy final : public Policy {
 public:
  AsyncPolicy();
  const TensorDictSpec& output_spec() const override { return outputs_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  TensorDictSpec outputs_;
  // Read by the copies of the last call.
  TensorDict written_;
};

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_ASYNC_POLICY_H_
