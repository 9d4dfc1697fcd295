// SPDX-License-Identifier: Apache-2.0
// Each transform beside an environment on a device makes the bits of one in
// host memory.
#include <cstdint>

#include "gtest/gtest.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/envs/device/testing/step_cases.h"
#include "rill/envs/device/testing/twin_envs.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(DeviceStepsTest, EachTransformMakesTheHostsBits) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream own,
                            Stream::Create(DeviceUnderTest()));
  for (const TransformsUnderTest& each : StepCases()) {
    SCOPED_TRACE(each.make().back()->name());
    for (const Stream* const stream :
         {static_cast<const Stream*>(nullptr), &own}) {
      RILL_ASSERT_OK_AND_ASSIGN(
          TwinEnvs twins, TwinEnvs::CreateOn(DeviceUnderTest(), each, stream));
      RILL_ASSERT_OK(twins.ResetAll());
      for (uint64_t i = 0; i < 10; ++i) {
        RILL_ASSERT_OK(twins.Step(i)) << "step " << i;
        RILL_ASSERT_OK(twins.Reset(i)) << "reset " << i;
      }
      RILL_EXPECT_OK(twins.CompareStates());
    }
  }
}

}  // namespace
}  // namespace rill
