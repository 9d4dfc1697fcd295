// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_DEVICE_TABLE_H_
#define RILL_TRANSFORMS_CONFORMANCE_DEVICE_TABLE_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/device_agreement.h"

namespace rill {

// A transform and a batch that it changes.
struct DeviceCase {
  std::unique_ptr<BatchTransform> transform;
  TensorDict batch;
  TransformCall call = TransformCall::kForward;
  double tolerance = 0;  // ExpectSameOnDevice
};

// Holds the column "device" of the table below `heading` of docs/transforms.md
// against the code. Each transform of the table that works on batches has a
// case. Where the column begins with "both", it does on `device` what it does
// on the host; else the spec of its case is refused there, with what to do. The
// test's `data` has //docs:transforms.md.
void ExpectAsDocumented(absl::string_view heading,
                        const std::vector<DeviceCase>& cases, Device device);

// Leaves for cases, [lanes, time]: those of TedSpec and "pixels" uint8
// [6, 5, 3], "planes" float32 [3, 6, 5], "left" and "right" float32 [2, 3],
// "torque" float32 [2] in [-2, 2], "wide" float64 [3], "info/count" int64 [1],
// "state_value" and "next/state_value" float32 [1].
TensorDict DeviceCaseBatch(const Shape& shape = {3, 8});

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_DEVICE_TABLE_H_
