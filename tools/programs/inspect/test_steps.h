// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_TEST_STEPS_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_TEST_STEPS_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::inspect {

// Steps [lanes, time] of episodes of `length`, of which the first one is step
// number `first`: x, next/reward = the lane + 1, next/done, policy_version =
// the step.
inline TensorDict MakeSteps(int64_t lanes, int64_t time, int64_t first,
                            int64_t length) {
  const Shape shape = {lanes, time, 1};
  TensorDict steps({lanes, time});
  const Tensor x = *Tensor::Zeros(DType::kFloat32, shape);
  const Tensor reward = *Tensor::Zeros(DType::kFloat32, shape);
  const Tensor done = *Tensor::Zeros(DType::kBool, shape);
  const Tensor version = *Tensor::Zeros(DType::kInt64, shape);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    for (int64_t t = 0; t < time; ++t) {
      const int64_t i = lane * time + t;
      const int64_t step = first + t;
      reward.data<float>()[i] = static_cast<float>(lane + 1);
      done.data<bool>()[i] = step % length == length - 1;
      version.data<int64_t>()[i] = step;
    }
  }
  RILL_EXPECT_OK(steps.Set("x", x));
  RILL_EXPECT_OK(steps.Set("next/reward", reward));
  RILL_EXPECT_OK(steps.Set("next/done", done));
  RILL_EXPECT_OK(steps.Set("policy_version", version));
  return steps;
}

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_TEST_STEPS_H_
