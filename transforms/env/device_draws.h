// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_DEVICE_DRAWS_H_
#define RILL_TRANSFORMS_ENV_DEVICE_DRAWS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/env/draw_kernels.h"
#include "rill/transforms/env/lane_draws.h"
#include "rill/transforms/memory/device_work.h"

namespace rill::transforms_internal {

// LaneDraws of a state whose tensors lie on the device of `work`: sets another
// "draws" in the state, which a kernel writes for all lanes. Errors of memory.
absl::StatusOr<DrawSource> DrawOnDevice(DrawStream stream, uint64_t seed,
                                        DeviceWork::Call* work,
                                        TensorDict* state);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ENV_DEVICE_DRAWS_H_
