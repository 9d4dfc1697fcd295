// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TESTING_FAKE_TORCH_TEST_H_
#define RILL_LIBTORCH_TESTING_FAKE_TORCH_TEST_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/core/Tensor.h"
#include "c10/util/ArrayRef.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/deferred_release.h"
#include "rill/libtorch/testing/fake_torch_device.h"
#include "rill/testing/status_matchers.h"
#include "torch/nn/module.h"

namespace rill {

// Tests of torch on fake:0. Its current stream is `torch_`; each test ends with
// no memory, stream or event of the device left, and no misuse.
class FakeTorchTest : public ::testing::Test {
 protected:
  FakeTorchTest() { RegisterFakeTorchDevice(); }

  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(Stream stream, Stream::Create(Device::Fake()));
    torch_.emplace(std::move(stream));
    SetFakeTorchStream(torch_->handle());
  }
  void TearDown() override {
    fake_->RunAll();
    EXPECT_EQ(libtorch_internal::SweepReleased(), 0);
    SetFakeTorchStream({});
    torch_.reset();
    EXPECT_THAT(fake_->TakeMisuse(), ::testing::IsEmpty());
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
  }

  // Bytes between host and device, and how often the host waited, since
  // FakeBackend::StartCalls.
  struct Crossed {
    int64_t bytes_to_host = 0;
    int64_t bytes_to_device = 0;
    int waits = 0;
  };
  Crossed TakeCrossed() {
    using Kind = FakeBackend::Call::Kind;
    Crossed crossed;
    for (const FakeBackend::Call& call : fake_->TakeCalls()) {
      crossed.waits += call.kind == Kind::kSynchronizeStream ||
                       call.kind == Kind::kSynchronizeEvent;
      if (call.kind != Kind::kCopy) continue;
      if (call.from_device && !call.to_device) {
        crossed.bytes_to_host += call.bytes;
      }
      if (call.to_device && !call.from_device) {
        crossed.bytes_to_device += call.bytes;
      }
    }
    return crossed;
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
  std::optional<Stream> torch_;
};

// Torch's name of fake:0.
inline c10::Device FakeTorch() { return {c10::DeviceType::PrivateUse1, 0}; }

// Two layers with the same weights at each call, on `device`: torch moves no
// module to a PrivateUse1.
class TwoLayers final : public torch::nn::Module {
 public:
  TwoLayers(int64_t inputs, int64_t outputs, c10::Device device) {
    const auto weight = [&](const char* name, c10::IntArrayRef sizes) {
      return register_parameter(
          name, StandardNormals(Rng(3), num_weights_++, sizes).to(device));
    };
    first_ = weight("first", {16, inputs});
    bias_ = weight("bias", {16});
    second_ = weight("second", {outputs, 16});
  }
  at::Tensor forward(const at::Tensor& input) {
    return at::linear(at::relu(at::linear(input, first_, bias_)), second_);
  }

 private:
  uint64_t num_weights_ = 0;
  at::Tensor first_, bias_, second_;
};

}  // namespace rill

#endif  // RILL_LIBTORCH_TESTING_FAKE_TORCH_TEST_H_
