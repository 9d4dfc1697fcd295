// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_
#define RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_

#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

enum class TransformCall { kForward, kInverse };

// Expects that the call makes of a copy of `batch` on `device` what it makes of
// `batch` on the host, bit for bit: on the current stream, whose work so far
// the batch's own copies are, with leaves that lie there and specs that say so.
// On the fake device nothing is freed too early, and each of its calls fails
// once, which is an error and changes no later call. On others values may
// differ by so much, relatively.
void ExpectSameOnDevice(const BatchTransform& transform, TransformCall call,
                        const TensorDict& batch, Device device,
                        double tolerance = 0);

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_
