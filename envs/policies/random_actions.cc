// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/random_actions.h"

#include <cstddef>

#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"

namespace rill {

absl::Status WriteRandomActions(const TensorDictSpec& action,
                                const RandomActionDraws& draws, int64_t number,
                                const TensorDict& step, const Stream* stream) {
  for (size_t i = 0; i < action.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = action.leaves()[i];
    RILL_ASSIGN_OR_RETURN(Tensor to, step.Get(leaf.key));
    const Rng rng(draws.seed, draws.stream,
                  static_cast<uint16_t>(draws.first_substream + i));
    // RandomInto fills `drawn` in place where it can, and else makes another,
    // which is copied.
    Tensor drawn = to;
    RILL_RETURN_IF_ERROR(leaf.spec.RandomInto(
        step.batch_shape(), rng, static_cast<uint64_t>(number), &drawn));
    if (drawn.raw_data() == to.raw_data()) continue;
    absl::Status copied;
    if (stream == nullptr || to.is_host()) {
      copied = to.CopyFrom(drawn);
    } else {
      copied = to.CopyFromAsync(drawn, *stream);
      copied.Update(stream->Synchronize());
    }
    RILL_RETURN_IF_ERROR(copied) << "in action \"" << leaf.key << "\"";
  }
  return absl::OkStatus();
}

}  // namespace rill
