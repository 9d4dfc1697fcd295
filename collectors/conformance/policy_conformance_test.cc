// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/conformance/policy_conformance.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/collectors/testing/parity_policy.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

PolicySubject With(std::shared_ptr<Policy> policy) {
  PolicySubject subject = {
      .policy = std::move(policy),
      .root = TensorDict({4}),
      .action = LeafSpec::Categorical(2),
  };
  Tensor observation = *Tensor::Zeros(DType::kFloat32, {4, 2});
  for (int64_t i = 0; i < 8; ++i) {
    observation.data<float>()[i] = 0.01f * static_cast<float>(i * i);
  }
  RILL_EXPECT_OK(subject.root.Set("observation", observation));
  return subject;
}

PolicySubject Parity() { return With(std::make_shared<ParityPolicy>()); }
PolicySubject Function() {
  return With(std::make_shared<FunctionPolicy>(
      [](const TensorDict&, const ActContext& context, Tensor* action) {
        std::fill_n(action->data<int64_t>(), 4, context.step % 2);
        return absl::OkStatus();
      }));
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyConformanceTest,
                         ::testing::Values(Parity, Function));

}  // namespace
}  // namespace rill
