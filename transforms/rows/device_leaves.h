// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_DEVICE_LEAVES_H_
#define RILL_TRANSFORMS_ROWS_DEVICE_LEAVES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"

namespace rill::transforms_internal {

// ReadLeaf (leaves.h) of a leaf on the call's device: a strided one is copied
// on the call's stream. The call keeps the leaf. FAILED_PRECONDITION where it
// lies elsewhere.
absl::StatusOr<Tensor> ReadDeviceLeaf(absl::string_view caller,
                                      absl::string_view key,
                                      const TensorDict& dict,
                                      DeviceWork::Call* call);
absl::StatusOr<Tensor> ReadDeviceLeaf(absl::string_view caller,
                                      absl::string_view key, DType dtype,
                                      const Shape& shape,
                                      const TensorDict& dict,
                                      DeviceWork::Call* call);

// UpdateLeaf of such a leaf: a copy where it may not be written.
absl::StatusOr<Tensor> UpdateDeviceLeaf(absl::string_view caller,
                                        absl::string_view key, DType dtype,
                                        const Shape& shape,
                                        DeviceWork::Call* call,
                                        TensorDict* dict);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_DEVICE_LEAVES_H_
