// SPDX-License-Identifier: Apache-2.0
// Batches of a ReplayBuffer reach a module on a device, the fake one.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/testing/fake_torch_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "torch/optim/adam.h"

namespace rill {
namespace {

constexpr int64_t kRows = 32, kBatch = 8;

absl::StatusOr<std::unique_ptr<ReplayBuffer>> Buffer(Device rows,
                                                     Device batches,
                                                     int64_t prefetch = 0) {
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = kRows, .device = rows}));
  ReplayBuffer::Options options = {.storage = std::move(storage),
                                   .sampler = MakeUniformSampler(),
                                   .batch_size = kBatch,
                                   .seed = 1,
                                   .prefetch = prefetch};
  if (batches != rows) options.device = batches;
  RILL_ASSIGN_OR_RETURN(auto buffer, ReplayBuffer::Create(std::move(options)));
  TensorDict steps({kRows});
  RILL_ASSIGN_OR_RETURN(const Tensor observations,
                        FromTorch(StandardNormals(Rng(1), 0, {kRows, 3})));
  RILL_ASSIGN_OR_RETURN(const Tensor goals,
                        FromTorch(StandardNormals(Rng(2), 0, {kRows, 2})));
  RILL_RETURN_IF_ERROR(steps.Set("observation", observations));
  RILL_RETURN_IF_ERROR(steps.Set("goal", goals));
  RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());
  return buffer;
}

// The leaves that the update reads.
TensorDict Read(const TensorDict& batch) {
  return *batch.Select(std::vector<absl::string_view>{"observation", "goal"});
}

struct Learner {
  explicit Learner(c10::Device device)
      : net(3, 2, device), adam(net.parameters(), 1e-2) {}

  at::Tensor Update(const TorchTensors& rows) {
    const at::Tensor loss =
        at::huber_loss(net.forward(rows["observation"]), rows["goal"]);
    adam.zero_grad();
    loss.backward();
    adam.step();
    return loss.detach();
  }

  TwoLayers net;
  torch::optim::Adam adam;
};

class DeviceBatchesTest : public FakeTorchTest {
 protected:
  void ExpectSameWeights(const Learner& got, const Learner& want) {
    for (size_t i = 0; i < want.net.parameters().size(); ++i) {
      EXPECT_TRUE(got.net.parameters()[i].cpu().allclose(
          want.net.parameters()[i], 1e-5, 1e-6))
          << i;
    }
  }
};

// Rows on a device: sampled, read by a module, and learnt from there.
TEST_F(DeviceBatchesTest, AStorageOnADeviceTrainsAModuleWithoutTheHost) {
  RILL_ASSERT_OK_AND_ASSIGN(auto there, Buffer(Device::Fake(), Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(auto here, Buffer(Device::Cpu(), Device::Cpu()));
  Learner learner(FakeTorch()), same(c10::kCPU);
  fake_->RunAll();
  for (int step = 0; step < 3; ++step) {
    fake_->StartCalls();
    RILL_ASSERT_OK_AND_ASSIGN(const auto pending, there->SamplePending());
    RILL_ASSERT_OK_AND_ASSIGN(const TorchTensors rows,
                              ToTorch(Read(pending.batch), pending.copied));
    const Crossed sampled = TakeCrossed();
    EXPECT_EQ(sampled.bytes_to_host, 0);
    EXPECT_EQ(sampled.bytes_to_device, 0);
    fake_->StartCalls();
    const at::Tensor loss = learner.Update(rows);
    const Crossed learnt = TakeCrossed();
    EXPECT_EQ(learnt.bytes_to_host, 0);
    EXPECT_EQ(learnt.bytes_to_device, 0);
    EXPECT_EQ(learnt.waits, 0);
    // The whole update is in torch's stream.
    EXPECT_GT(fake_->NumPending(0, torch_->handle()), 0);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, here->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TorchTensors want, ToTorch(Read(batch)));
    EXPECT_NEAR(loss.item<float>(), same.Update(want).item<float>(), 1e-5);
  }
  ExpectSameWeights(learner, same);
}

// Rows of a storage on a device that are still being gathered.
TEST_F(DeviceBatchesTest, TorchsStreamWaitsForAReadThatIsEnqueued) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            Buffer(Device::Fake(), Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream reads, Stream::Create(Device::Fake()));
  Learner learner(FakeTorch()), same(c10::kCPU);
  const std::vector<Slot> slots = {3, 1, 4, 1, 5};
  TensorDict batch;
  fake_->StartCalls();
  RILL_ASSERT_OK_AND_ASSIGN(
      Event event, buffer->storage().EnqueueRead(slots, reads, &batch));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TorchTensors rows,
      ToTorch(batch, std::make_shared<const Event>(std::move(event))));
  const at::Tensor loss = learner.Update(rows);
  const Crossed crossed = TakeCrossed();
  EXPECT_EQ(crossed.bytes_to_host, 0);
  EXPECT_EQ(crossed.bytes_to_device, 0);
  EXPECT_EQ(crossed.waits, 0);
  // Nothing of the update runs before the read.
  const int64_t given = fake_->NumPending(0, torch_->handle());
  while (fake_->RunOne(0, torch_->handle())) {
  }
  EXPECT_GE(fake_->NumPending(0, torch_->handle()), given - 1);
  fake_->RunAll();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
  RILL_ASSERT_OK_AND_ASSIGN(const TorchTensors want, ToTorch(host));
  EXPECT_NEAR(loss.item<float>(), same.Update(want).item<float>(), 1e-5);
}

// Rows in host memory, a network on a device: batch k + 1 is copied while step
// k is computed.
TEST_F(DeviceBatchesTest, ABatchIsCopiedWhileTheStepBeforeIsComputed) {
  for (const int64_t prefetch : {0, 2}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto there,
                              Buffer(Device::Cpu(), Device::Fake(), prefetch));
    RILL_ASSERT_OK_AND_ASSIGN(auto here, Buffer(Device::Cpu(), Device::Cpu()));
    Learner learner(FakeTorch()), same(c10::kCPU);
    fake_->RunAll();
    int64_t steps_before = 0;  // Operations in torch's stream.
    std::vector<at::Tensor> losses;
    for (int step = 0; step < 4; ++step) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto pending, there->SamplePending());
      ASSERT_NE(pending.copied, nullptr);
      // The copy is complete before any of the steps before it has run.
      RILL_ASSERT_OK(pending.copied->Synchronize());
      EXPECT_GE(fake_->NumPending(0, torch_->handle()), steps_before);
      RILL_ASSERT_OK_AND_ASSIGN(const TorchTensors rows,
                                ToTorch(Read(pending.batch), pending.copied));
      losses.push_back(learner.Update(rows));
      steps_before = fake_->NumPending(0, torch_->handle());
      EXPECT_GT(steps_before, 0);
    }
    for (const at::Tensor& loss : losses) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, here->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const TorchTensors want, ToTorch(Read(batch)));
      EXPECT_NEAR(loss.item<float>(), same.Update(want).item<float>(), 1e-5);
    }
  }
}

}  // namespace
}  // namespace rill
