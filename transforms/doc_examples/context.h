// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TRANSFORMS_DOC_EXAMPLES_CONTEXT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/units/hindsight_relabel.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const HindsightRelabel::Function MinusOneUnlessEqual;
extern const TensorDict rollout;
TransformUnderTest ToDeviceUnderTest();
StepTransformUnderTest CounterUnderTest();
UnitTransformUnderTest UnderTest(int steps);

}  // namespace rill::doc_examples

#endif  // RILL_TRANSFORMS_DOC_EXAMPLES_CONTEXT_H_
