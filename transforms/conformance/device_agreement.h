// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_
#define RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_

#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

enum class TransformCall { kForward, kInverse };

// Makes the call on the host, and on a copy of `batch` on `device`. Expects the
// same there, bit for bit, with leaves that lie there and specs that say so.
// The call goes on the current stream, behind the copies of the batch.
// On the fake device nothing is freed too early, and each of its calls fails
// once, which is an error and changes no later call. On other devices values
// may differ by `tolerance`, relatively.
void ExpectSameOnDevice(const BatchTransform& transform, TransformCall call,
                        const TensorDict& batch, Device device,
                        double tolerance = 0);

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_DEVICE_AGREEMENT_H_
