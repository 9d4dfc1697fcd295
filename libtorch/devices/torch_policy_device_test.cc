// SPDX-License-Identifier: Apache-2.0
// Policies that act on a device, the fake one.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/envs/policies/policy.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/testing/fake_torch_test.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using Actions = TorchPolicy::Actions;

constexpr int64_t kLanes = 5, kObservation = 3, kWidth = 4;

bool IsDiscrete(Actions actions) {
  return actions == Actions::kGreedy || actions == Actions::kCategorical;
}

// A network on `device` that gives what the kind of action wants, and a value.
TorchModel Model(Actions actions, c10::Device device) {
  auto net = std::make_shared<TwoLayers>(kObservation, kWidth, device);
  return TorchModel([net, actions](absl::Span<const at::Tensor> in) {
    const at::Tensor out = net->forward(in[0]);
    std::vector<at::Tensor> results = {out};
    if (actions == Actions::kTanhNormal) results.push_back(out.exp());
    results.push_back(out.sum(-1, true));
    return results;
  });
}

std::unique_ptr<TorchPolicy> Made(Actions actions, c10::Device device) {
  TorchPolicy::Options options = {
      .model = Model(actions, device), .actions = actions, .seed = 3};
  if (IsDiscrete(actions)) options.mask_key = "mask";
  RILL_EXPECT_OK(options.outputs.Set(
      "state_value", LeafSpec::Unbounded(DType::kFloat32, {1})));
  return *TorchPolicy::Create(std::move(options));
}

// Observations, and two legal actions in each lane.
TensorDict Root() {
  TensorDict root({kLanes});
  RILL_EXPECT_OK(
      root.Set("observation",
               *FromTorch(StandardNormals(Rng(7), 0, {kLanes, kObservation}))));
  const Tensor mask = *Tensor::Zeros(DType::kBool, {kLanes, kWidth});
  for (int64_t i = 0; i < kLanes * kWidth; ++i) {
    mask.data<bool>()[i] = (i % kWidth + i / kWidth) % 2 == 0;
  }
  RILL_EXPECT_OK(root.Set("mask", mask));
  return root;
}

TensorDict Step(Actions actions) {
  TensorDict step({kLanes});
  RILL_EXPECT_OK(step.Set(
      "action", IsDiscrete(actions)
                    ? *Tensor::Zeros(DType::kInt64, {kLanes})
                    : *Tensor::Zeros(DType::kFloat32, {kLanes, kWidth})));
  for (const char* const key : {"log_prob", "state_value"}) {
    RILL_EXPECT_OK(step.Set(key, *Tensor::Zeros(DType::kFloat32, {kLanes, 1})));
  }
  return step;
}

class TorchPolicyDeviceTest : public FakeTorchTest {};

// The root is still being copied when the policy is asked, and its action is
// read by work behind it: nothing on the device runs before somebody waits.
TEST_F(TorchPolicyDeviceTest, ActionsAreThoseOfTheSameModuleOnTheCpu) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const TensorDict here = Root();
  for (const Actions actions : {Actions::kDeterministic, Actions::kGreedy,
                                Actions::kCategorical, Actions::kTanhNormal}) {
    SCOPED_TRACE(static_cast<int>(actions));
    TensorDict want = Step(actions);
    RILL_ASSERT_OK(
        Made(actions, c10::kCPU)->Act(here, {.step = 4, .seed = 9}, &want));

    const auto policy = Made(actions, FakeTorch());
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict step,
                              Step(actions).To(Device::Fake()));
    std::vector<Tensor> in_flight;
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict root,
                              here.ToAsync(stream, &in_flight));
    fake_->StartCalls();
    RILL_ASSERT_OK(
        policy->Act(root, {.step = 4, .stream = &stream, .seed = 9}, &step));
    const Crossed crossed = TakeCrossed();
    // As the header says: the outputs that the action is made of and the mask
    // cross, and back the action and its log-probability.
    const int64_t floats = kLanes * kWidth * int64_t{sizeof(float)};
    const int64_t mask = kLanes * kWidth;
    const int64_t log_probs = kLanes * int64_t{sizeof(float)};
    const int64_t indices = kLanes * int64_t{sizeof(int64_t)};
    switch (actions) {
      case Actions::kDeterministic:
        EXPECT_EQ(crossed.bytes_to_host, 0);
        EXPECT_EQ(crossed.bytes_to_device, 0);
        EXPECT_EQ(crossed.waits, 0);
        break;
      case Actions::kGreedy:
        EXPECT_EQ(crossed.bytes_to_host, floats + mask);
        EXPECT_EQ(crossed.bytes_to_device, indices);
        break;
      case Actions::kCategorical:
        EXPECT_EQ(crossed.bytes_to_host, floats + mask);
        EXPECT_EQ(crossed.bytes_to_device, indices + log_probs);
        break;
      case Actions::kTanhNormal:
        EXPECT_EQ(crossed.bytes_to_host, 2 * floats);
        EXPECT_EQ(crossed.bytes_to_device, floats + log_probs);
        break;
    }
    // Behind the policy in the caller's stream.
    RILL_ASSERT_OK(stream.Synchronize());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, step.To(Device::Cpu()));
    for (const std::string& key : want.LeafKeys()) {
      EXPECT_TRUE(ToTorch(*got.Find(key))
                      ->allclose(*ToTorch(*want.Find(key)), 1e-5, 1e-6))
          << key;
    }
  }
}

// The caller may write the root again: its stream is behind torch's.
TEST_F(TorchPolicyDeviceTest, TheCallersStreamIsBehindTorchsWithAnErrorToo) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict root, Root().To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto policy,
      TorchPolicy::Create({.model = Model(Actions::kDeterministic, FakeTorch()),
                           .actions = Actions::kDeterministic}));
  TensorDict step = Step(Actions::kDeterministic);
  EXPECT_THAT(policy->Act(root, {.stream = &stream}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 2 outputs of the model, want 1")));
  const Tensor observation = *root.Find("observation");
  RILL_ASSERT_OK(fake_->Fill(0, observation.raw_data(), 0,
                             observation.size_bytes(), stream.handle()));
  while (fake_->RunOne(0, stream.handle())) {
  }
  EXPECT_GT(fake_->NumPending(0, torch_->handle()), 0);
  EXPECT_GT(fake_->NumPending(0, stream.handle()), 0);
  fake_->RunAll();
}

TEST_F(TorchPolicyDeviceTest, AModuleOnAnotherDeviceIsRefusedByKey) {
  const auto refusal = [](c10::Device module, Device leaves) {
    TorchPolicy::Options options = {
        .model = TorchModel::Of(
            std::make_shared<TwoLayers>(kObservation, kWidth, module)),
        .actions = Actions::kGreedy};
    const auto policy = *TorchPolicy::Create(std::move(options));
    const TensorDict root = *Root().To(leaves);
    TensorDict step = *Step(Actions::kGreedy).To(leaves);
    return policy->Act(root, {}, &step).status();
  };
  EXPECT_THAT(
      refusal(c10::kCPU, Device::Fake(1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("TorchPolicy::Act: \"observation\": got Float[5, 3] "
                         "on fake:1, want it on cpu, where the model's")));
  EXPECT_THAT(refusal(FakeTorch(), Device::Cpu()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("on cpu, want it on fake:0")));
  RILL_EXPECT_OK(refusal(FakeTorch(), Device::Fake()));
  fake_->RunAll();
}

}  // namespace
}  // namespace rill
