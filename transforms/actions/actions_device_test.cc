// SPDX-License-Identifier: Apache-2.0
// The column "device" of docs/transforms.md, on the fake device and on a GPU.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/specs/leaf_spec.h"
#include "rill/transforms/actions/action_chunk.h"
#include "rill/transforms/actions/action_scaling.h"
#include "rill/transforms/actions/flatten_action.h"
#include "rill/transforms/conformance/device_table.h"

namespace rill {
namespace {

TEST(ActionsDeviceTest, AreAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform,
                       TransformCall call = TransformCall::kForward) {
    cases.push_back({std::move(transform), DeviceCaseBatch(), call});
  };
  for (const TransformCall call :
       {TransformCall::kForward, TransformCall::kInverse}) {
    add(*ActionScaling::Create(
            {.spec = LeafSpec::Bounded(DType::kFloat32, {2}, -1.5, 0.5),
             .in_keys = {"torque"},
             .in_keys_inv = {"torque"}}),
        call);
    for (const bool divides : {true, false}) {
      add(*ActionScaling::Create({.loc = {0.1},
                                  .scale = {3, 0.7, 11},
                                  .standard_normal = divides,
                                  .in_keys = {"wide"},
                                  .in_keys_inv = {"wide"}}),
          call);
    }
    add(*FlattenAction::Create({.first_dim = -2,
                                .last_dim = -1,
                                .in_keys = {"left"},
                                .action_shape = {2, 3}}),
        TransformCall::kForward);
  }
  add(*ActionChunk::Create({.chunk_size = 5}));
  add(*ActionChunk::Create(
      {.chunk_size = 3, .action_key = "torque", .done_key = ""}));
  ExpectAsDocumented("transforms/actions/", cases, DeviceUnderTest());
}

}  // namespace
}  // namespace rill
