// SPDX-License-Identifier: Apache-2.0
// TD errors of a network become priorities where both lie on a device.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/libtorch/learner/td_errors.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/testing/fake_torch_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

class TdErrorsDeviceTest : public FakeTorchTest {};

TEST_F(TdErrorsDeviceTest, TheHostNeitherWaitsNorSeesThem) {
  PrioritizedSelector* selector;
  std::shared_ptr<Storage> storage = *DenseStorage::Create({.capacity = 4});
  auto buffer =
      *ReplayBuffer::Create({.storage = storage,
                             .sampler = *MakePrioritizedSampler(
                                 {.device = Device::Fake()}, &selector),
                             .batch_size = 8,
                             .device = Device::Fake()});
  TensorDict steps({2});
  RILL_ASSERT_OK(steps.Set("x", *Tensor::Zeros(DType::kFloat32, {2})));
  RILL_ASSERT_OK(buffer->Extend(steps).status());
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict on_host, batch.To(Device::Cpu()));
  // Row 0 gets 0.25, row 1 gets 4: by arithmetic in torch's stream.
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor index, ToTorch(*on_host.Find("index")));
  const at::Tensor errors =
      (index.to(at::kFloat) * -3.75 - 0.25).to(FakeTorch());
  fake_->StartCalls();
  RILL_ASSERT_OK(UpdatePriorities(*buffer, batch, errors));
  const Crossed crossed = TakeCrossed();
  EXPECT_EQ(crossed.waits, 0);
  EXPECT_EQ(crossed.bytes_to_host, 0);
  EXPECT_EQ(crossed.bytes_to_device, 0);
  EXPECT_EQ(selector->Priorities(), std::vector<float>({0.25, 4, 0, 0}));
}

}  // namespace
}  // namespace rill
