// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/random_log_probs.h"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Two agents that choose under masks, and a box beside them.
EnvSpec Spec() {
  EnvSpec spec = {.name = "Spec", .lanes = 2};
  RILL_EXPECT_OK(
      spec.observation.Set("agents/legal", LeafSpec::Binary({2, 3})));
  RILL_EXPECT_OK(spec.action.Set("agents/action",
                                 LeafSpec::Categorical(3, DType::kInt64, {2})));
  RILL_EXPECT_OK(
      spec.action.Set("force", LeafSpec::Bounded(DType::kFloat32, {2}, -2, 2)));
  spec.legal_actions = {{.action = "agents/action", .mask = "agents/legal"}};
  return spec;
}

TensorDictSpec Outputs() {
  TensorDictSpec outputs;
  RILL_EXPECT_OK(outputs.Set("agents/log_prob",
                             LeafSpec::Unbounded(DType::kFloat32, {2, 1})));
  RILL_EXPECT_OK(outputs.Set("sample_log_prob",
                             LeafSpec::Unbounded(DType::kFloat64, {1})));
  RILL_EXPECT_OK(
      outputs.Set("value", LeafSpec::Unbounded(DType::kFloat32, {1})));
  return outputs;
}

TensorDict Step() {
  TensorDict step = *StepSpec(Spec())->Zero({2});
  const TensorDictSpec outputs = Outputs();
  for (const auto& leaf : outputs.leaves()) {
    RILL_EXPECT_OK(step.Set(leaf.key, *leaf.spec.Zero({2})));
  }
  const std::vector<bool> legal = {true,  true,  false, true, true, true,
                                   false, false, true,  true, true, false};
  RILL_EXPECT_OK(step.Find("agents/legal")
                     ->CopyFrom(*Tensor::From<bool>(legal, {2, 2, 3})));
  RILL_EXPECT_OK(WriteRandomActions(Spec(), {.seed = 3}, 0, step, step));
  return step;
}

void ExpectLogProbs(const TensorDict& step) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, step.To(Device::Cpu()));
  const auto agents = *host.Flat<float>("agents/log_prob");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(agents[i], -std::log(std::vector{2.0, 3.0, 1.0, 2.0}[i]));
  }
  // Of all leaves: both agents' options, and the box of 4 by 4.
  const auto all = *host.Flat<double>("sample_log_prob");
  EXPECT_NEAR(all[0], -std::log(6.0 * 16), 1e-12);
  EXPECT_NEAR(all[1], -std::log(2.0 * 16), 1e-12);
  EXPECT_THAT(*host.Find("value"), TensorElementsAre<float>(0, 0));
}

TEST(RandomLogProbsTest, AreOfTheActionsBelowTheirGroup) {
  RILL_ASSERT_OK_AND_ASSIGN(auto log_probs,
                            RandomLogProbs::Create(Spec(), Outputs()));
  TensorDict step = Step();
  RILL_ASSERT_OK(log_probs.Write(step, nullptr));
  ExpectLogProbs(step);
}

TEST(RandomLogProbsTest, AreTheSameOnADevice) {
  RILL_ASSERT_OK_AND_ASSIGN(auto log_probs,
                            RandomLogProbs::Create(Spec(), Outputs()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, Step().To(Device::Fake()));
  // Masks are read there, too.
  RILL_ASSERT_OK(WriteRandomActions(Spec(), {.seed = 3}, 0, step, step));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, step.To(Device::Cpu()));
  EXPECT_THAT(host, BitEqualTo(Step()));
  RILL_ASSERT_OK(log_probs.Write(step, nullptr));
  ExpectLogProbs(step);
}

TEST(RandomLogProbsTest, OutputsThatCannotBeOneAreRefused) {
  const auto refused = [](const char* key, LeafSpec leaf, const char* text) {
    TensorDictSpec outputs;
    RILL_ASSERT_OK(outputs.Set(key, std::move(leaf)));
    EXPECT_THAT(RandomLogProbs::Create(Spec(), outputs).status(),
                StatusIs(kInvalid, HasSubstr(text)));
  };
  refused("log_prob", LeafSpec::Unbounded(DType::kInt64, {1}),
          "\"log_prob\": got int64[1], want float32 or float64");
  refused("agents/action_log_prob", LeafSpec::Unbounded(DType::kFloat32, {3}),
          "got 3 elements a lane, want a number that divides the 2 of "
          "\"agents/action\"");
  refused("others/log_prob", LeafSpec::Unbounded(DType::kFloat32, {1}),
          "no action below \"others/\"");
}

}  // namespace
}  // namespace rill
