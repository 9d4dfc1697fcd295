// SPDX-License-Identifier: Apache-2.0
// Tensors of a device between Rill and torch, on the fake one.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/libtorch/deferred_release.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/testing/fake_torch_test.h"
#include "rill/libtorch/torch_stream.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using Call = FakeBackend::Call;

class DeviceExchangeTest : public FakeTorchTest {
 protected:
  // A kernel of torch's: the sum of a tensor's elements to `*sum`, in torch's
  // stream.
  void Sum(const at::Tensor& tensor, float* sum) {
    const int64_t count = tensor.numel();
    RILL_ASSERT_OK(fake_->Launch(
        0, torch_->handle(),
        {{tensor.const_data_ptr(), static_cast<int64_t>(tensor.nbytes())}},
        [count, sum](absl::Span<std::byte* const> ranges) {
          const auto* const values = reinterpret_cast<float*>(ranges[0]);
          for (int64_t i = 0; i < count; ++i) *sum += values[i];
        }));
  }
};

Tensor Ones(int64_t count) {
  return *Tensor::From(std::vector<float>(static_cast<size_t>(count), 1.0f),
                       {count});
}

TEST_F(DeviceExchangeTest, BytesOfADeviceAreSharedBothWays) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Ones(4).To(Device::Fake(1)));
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor shared, ToTorch(tensor));
  EXPECT_EQ(shared.device().index(), 1);
  EXPECT_EQ(shared.const_data_ptr(), tensor.raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor back, FromTorch(shared));
  EXPECT_EQ(back.device(), Device::Fake(1));
  EXPECT_FALSE(back.is_host());
  EXPECT_EQ(back.raw_data(), tensor.raw_data());
}

TEST_F(DeviceExchangeTest, PinnedMemoryIsTheCpus) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Ones(4).Pin(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor shared, ToTorch(tensor));
  EXPECT_TRUE(shared.is_cpu());
  EXPECT_EQ(shared.const_data_ptr(), tensor.raw_data());
}

TEST_F(DeviceExchangeTest, ADeviceThatIsNotThereIsRefused) {
  float place[4];
  const Tensor third = *Tensor::View(
      Buffer::Wrap(place, 16, Device::Fake(2), MemoryKind::kDevice, nullptr),
      DType::kFloat32, {4}, 0);
  EXPECT_THAT(ToTorch(third),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("device: got fake:2, which this LibTorch")));
  EXPECT_THAT(CurrentTorchStream(Device::Cuda(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(DeviceExchangeTest, TorchsStreamWaitsForACopyAndTheHostDoesNot) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream copies,
                            Stream::Create(Device::Fake()));
  TensorDict rows({4});
  RILL_ASSERT_OK(rows.Set("observation", Ones(4)));
  std::vector<Tensor> in_flight;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            rows.ToAsync(copies, &in_flight));
  RILL_ASSERT_OK_AND_ASSIGN(Event event, Event::Record(copies));
  const auto copied = std::make_shared<const Event>(std::move(event));
  fake_->StartCalls();
  RILL_ASSERT_OK_AND_ASSIGN(TorchTensors inputs, ToTorch(batch, copied));
  float sum = 0;
  Sum(inputs["observation"], &sum);
  EXPECT_EQ(fake_->NumPending(0, copies.handle()), 2);  // The copy, the event.
  // Torch's kernel may not run before the copy.
  while (fake_->RunOne(0, torch_->handle())) {
  }
  EXPECT_EQ(sum, 0);
  for (const Call& call : fake_->TakeCalls()) {
    EXPECT_NE(call.kind, Call::Kind::kSynchronizeStream);
    EXPECT_NE(call.kind, Call::Kind::kSynchronizeEvent);
  }
  fake_->RunAll();
  EXPECT_EQ(sum, 4);
}

TEST_F(DeviceExchangeTest, TheHostWaitsForACopyToItsOwnMemory) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream copies,
                            Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, Ones(4).To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor here, Tensor::Empty(DType::kFloat32, {4},
                                       {.device = Device::Fake(),
                                        .memory_kind = MemoryKind::kPinned}));
  RILL_ASSERT_OK(here.CopyFromAsync(there, copies));
  RILL_ASSERT_OK_AND_ASSIGN(Event event, Event::Record(copies));
  TensorDict batch({4});
  RILL_ASSERT_OK(batch.Set("observation", here));
  RILL_ASSERT_OK(
      ToTorch(batch, std::make_shared<const Event>(std::move(event))));
  EXPECT_THAT(here, TensorElementsAre<float>(1, 1, 1, 1));
}

TEST_F(DeviceExchangeTest, MemoryGoesBehindTheWorkThatTorchWasGiven) {
  RILL_ASSERT_OK_AND_ASSIGN(Tensor tensor, Ones(4).To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor shared, ToTorch(tensor));
  tensor = Tensor();
  float sum = 0;
  Sum(shared, &sum);
  shared.reset();
  EXPECT_EQ(libtorch_internal::SweepReleased(), 1);
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 1);
  fake_->RunAll();
  EXPECT_EQ(sum, 4);
  EXPECT_EQ(libtorch_internal::SweepReleased(), 0);
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
}

}  // namespace
}  // namespace rill
