// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_STEP_CASES_H_
#define RILL_ENVS_DEVICE_TESTING_STEP_CASES_H_

#include <vector>

#include "rill/envs/device/testing/twin_envs.h"

namespace rill {

// Each transform that works beside an environment, over the leaves of TwinEnvs.
std::vector<TransformsUnderTest> StepCases();

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_STEP_CASES_H_
