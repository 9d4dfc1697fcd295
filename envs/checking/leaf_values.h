// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CHECKING_LEAF_VALUES_H_
#define RILL_ENVS_CHECKING_LEAF_VALUES_H_

#include <string>

#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// The first value of a leaf that is no value whatever its spec says: a NaN, or
// a bool whose byte is neither 0 nor 1. `lane 2, "next/observation"[7]: got
// nan`; "" where there is none. Leaves are [lanes, ...], contiguous and in host
// memory. Cost: one pass.
std::string FirstNoValue(const TensorDict& leaves);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CHECKING_LEAF_VALUES_H_
