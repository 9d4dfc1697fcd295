// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_LENT_ARRAY_H_
#define RILL_ENVS_DEVICE_LENT_ARRAY_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {

// The array `key` of what DeviceSimulator::Lend gave, seen with `shape`: a last
// dimension of 1 may be missing. INVALID_ARGUMENT names the leaf and both sides
// where it is missing, has another shape, lies elsewhere or is not contiguous.
absl::StatusOr<Tensor> FindLent(const TensorDict& lent, absl::string_view key,
                                const Shape& shape, Device device);

// INVALID_ARGUMENT unless `lent` is `leaf` once more: dtype and address.
absl::Status CheckSameArray(absl::string_view key, const Tensor& lent,
                            const Tensor& leaf);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_DEVICE_LENT_ARRAY_H_
