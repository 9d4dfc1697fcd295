// SPDX-License-Identifier: Apache-2.0
// The calls of RandomCropTensorDict for a batch on a device.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/device_table.h"
#include "rill/transforms/episodes/random_crop.h"

namespace rill {
namespace {

using ::testing::IsEmpty;
using Operation = FakeBackend::Operation;

// Nor does it free what the gather is yet to read.
TEST(RandomCropFakeTest, OnlyAMaskIsWaitedFor) {
  using Call = FakeBackend::Call;
  FakeBackend* const fake = FakeBackend::Install({});
  auto crop =
      *RandomCropTensorDict::Create({.sub_seq_len = 2, .mask_key = "mask"});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  const Stream stream = *Stream::Create(Device::Fake());
  const StreamScope scope(stream);
  for (const bool masked : {false, true}) {
    TensorDict batch = DeviceCaseBatch({4, 5});
    if (masked) {
      RILL_ASSERT_OK(batch.Set(
          "mask", *Tensor::From(std::vector<bool>(20, true), {4, 5})));
    }
    RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Fake()));
    const int64_t gathers = fake->Count(Operation::kGatherRows);
    fake->StartCalls();
    RILL_ASSERT_OK(crop->Forward(&batch, &state));
    int waits = 0;
    for (const Call& call : fake->TakeCalls()) {
      waits += call.kind == Call::Kind::kSynchronizeStream ||
                       call.kind == Call::Kind::kSynchronizeEvent
                   ? 1
                   : 0;
    }
    EXPECT_EQ(waits, masked ? 1 : 0);
    EXPECT_EQ(fake->Count(Operation::kGatherRows), gathers + 1);
    RILL_ASSERT_OK(stream.Synchronize());
  }
  EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
}

TEST(RandomCropFakeTest, ASteadyStateAllocatesNothing) {
  FakeBackend* const fake = FakeBackend::Install({});
  auto crop = *RandomCropTensorDict::Create({.sub_seq_len = 2});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            DeviceCaseBatch({4, 5}).To(Device::Fake()));
  const Stream stream = *Stream::Create(Device::Fake());
  const StreamScope scope(stream);
  TensorDict batch;
  for (int i = 0; i < 6; ++i) {
    const int64_t before = fake->Count(Operation::kAllocate);
    batch = there;
    RILL_ASSERT_OK(crop->Forward(&batch, &state));
    if (i > 2) {
      EXPECT_EQ(fake->Count(Operation::kAllocate), before) << i;
    }
    RILL_ASSERT_OK(stream.Synchronize());
  }
}

}  // namespace
}  // namespace rill
