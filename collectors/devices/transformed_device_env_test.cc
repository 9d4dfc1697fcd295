// SPDX-License-Identifier: Apache-2.0
// Transforms of a collector whose environment is on a device: batches, states
// and statistics are those of host memory.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/devices/testing/cart_pole_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

constexpr int64_t kBatches = 4;

absl::StatusOr<std::unique_ptr<SyncCollector>> Collect(Device device,
                                                       Policy* policy,
                                                       Device storing_device) {
  SyncCollector::Options options = CartPoleCollectorOptions(policy);
  options.storing_device = storing_device;
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        VecNorm::Create({.shapes = {{4}}, .decay = 1}));
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        StepCounter::Create({.max_steps = 9}));
  return CollectCartPole(device, std::move(options));
}

class TransformedDeviceCollectorTest
    : public ::testing::TestWithParam<bool> {  // Batches are on the device too.
 protected:
  static Device StoringDevice() {
    return GetParam() ? DeviceUnderTest() : Device::Cpu();
  }
};

TEST_P(TransformedDeviceCollectorTest, BatchesEqualThoseOfHostMemory) {
  AsyncPolicy policy;
  AsyncPolicy host_policy;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto want, Collect(Device::Cpu(), &host_policy, Device::Cpu()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto got, Collect(DeviceUnderTest(), &policy, StoringDevice()));
  for (int64_t i = 0; i < kBatches; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want_batch, want->Next());
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict got_batch, got->Next());
    ASSERT_EQ(got_batch.Find("action")->device(), StoringDevice());
    RILL_ASSERT_OK_AND_ASSIGN(got_batch, got_batch.To(Device::Cpu()));
    RILL_ASSERT_OK(got_batch.CheckEqual(want_batch));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want_states,
                            want->TransformStates());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got_states,
                            got->TransformStates());
  RILL_EXPECT_OK(got_states.CheckEqual(want_states));
}

INSTANTIATE_TEST_SUITE_P(All, TransformedDeviceCollectorTest,
                         ::testing::Bool());

}  // namespace
}  // namespace rill
