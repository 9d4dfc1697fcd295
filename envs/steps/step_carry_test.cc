// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_carry.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// A reader on another stream than the default one needs no wait.
TEST(StepCarryTest, LeavesOnADeviceAreCompleteWhenRunReturns) {
  FakeBackend* const fake = FakeBackend::Install({});
  TensorDict step({2});
  RILL_ASSERT_OK(step.Set("x", *Tensor::From<float>({0, 0}, {2, 1})));
  RILL_ASSERT_OK(step.Set("done", *Tensor::From<bool>({false, false}, {2})));
  RILL_ASSERT_OK(step.Set("next/x", *Tensor::From<float>({1, 2}, {2, 1})));
  RILL_ASSERT_OK(
      step.Set("next/done", *Tensor::From<bool>({false, true}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(step, step.To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const StepCarry carry, StepCarry::Bind(step, step));
  RILL_ASSERT_OK(carry.Run());
  EXPECT_EQ(fake->NumPending(0, {}), 0);
  EXPECT_THAT(step.Find("x")->BitEquals(*step.Find("next/x")),
              IsOkAndHolds(true));
  EXPECT_THAT(step.Find("done")->BitEquals(*step.Find("next/done")),
              IsOkAndHolds(true));
}

TEST(StepCarryTest, LeavesOnADeviceMayHaveGapsOnEitherSide) {
  FakeBackend::Install({});
  const Tensor wide =
      *Tensor::From<float>({1, 2, 3, 4}, {2, 2})->To(Device::Fake());
  const Tensor dense = *Tensor::From<float>({5, 6}, {2, 1})->To(Device::Fake());
  TensorDict step({2});
  RILL_ASSERT_OK(step.Set("x", *wide.Slice(1, 0, 1)));
  RILL_ASSERT_OK(step.Set("next/x", dense));
  RILL_ASSERT_OK(step.Set("y", *dense.Clone()));
  RILL_ASSERT_OK(step.Set("next/y", *wide.Slice(1, 1, 2)));
  RILL_ASSERT_OK_AND_ASSIGN(const StepCarry carry, StepCarry::Bind(step, step));
  RILL_ASSERT_OK(carry.Run());
  for (const char* key : {"x", "y"}) {
    EXPECT_THAT(
        step.Find(key)->BitEquals(*step.Find(absl::StrCat("next/", key))),
        IsOkAndHolds(true));
  }
  // They wait for what the caller's stream still has to do.
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const Tensor later = *Tensor::From<float>({7, 8}, {2, 1})->To(Device::Fake());
  RILL_ASSERT_OK(dense.CopyFromAsync(later, stream));
  RILL_ASSERT_OK(carry.Run(&stream));
  EXPECT_THAT(step.Find("x")->BitEquals(later), IsOkAndHolds(true));
}

}  // namespace
}  // namespace rill
