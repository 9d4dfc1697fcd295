// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_PART_WEIGHTS_H_
#define RILL_DISTRIBUTED_KILLS_PART_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Weights that say their version everywhere.
inline absl::StatusOr<TensorDict> WeightsOf(int64_t version) {
  TensorDict weights;
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf, Tensor::From(std::vector<int64_t>(256, version), {256}));
  RILL_RETURN_IF_ERROR(weights.Set("version", std::move(leaf)));
  return weights;
}

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_PART_WEIGHTS_H_
