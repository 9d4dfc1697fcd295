// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/device_draws.h"

#include <utility>

#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {

absl::StatusOr<DrawSource> DrawOnDevice(DrawStream stream, uint64_t seed,
                                        DeviceWork::Call* work,
                                        TensorDict* state) {
  RILL_ASSIGN_OR_RETURN(const Tensor env_seed, state->Get(kDrawsSeedKey));
  RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kDrawsKey));
  RILL_ASSIGN_OR_RETURN(Tensor after,
                        work->Take(before.dtype(), before.shape()));
  work->Keep(env_seed);
  work->Keep(before);
  const Rng rng(seed, RngStream::kTransform, static_cast<uint16_t>(stream));
  const DrawSource draws = {.seed = seed,
                            .stream = rng.stream(),
                            .env_seed = env_seed.data<int64_t>(),
                            .before = before.data<int64_t>(),
                            .after = after.data<int64_t>(),
                            .lanes = before.num_elements()};
  RILL_RETURN_IF_ERROR(state->Set(kDrawsKey, std::move(after)));
  return draws;
}

}  // namespace rill::transforms_internal
