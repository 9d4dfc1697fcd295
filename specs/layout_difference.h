// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_LAYOUT_DIFFERENCE_H_
#define RILL_SPECS_LAYOUT_DIFFERENCE_H_

#include <string>

#include "rill/specs/spec.h"

namespace rill {

// The difference of the layouts of two specs, as a part of an error: `leaf
// "observation": got float32[5], want float32[4]`, `leaf "action": got none,
// want int64[]`. Names the first leaf, those of `want` before those of `got`,
// and says how many more differ. Empty where both have the same keys, dtypes
// and shapes; order, domains and entries that are no tensors do not count.
// Cost: O(leaves of both), of a product in the worst case.
std::string LayoutDifference(const TensorDictSpec& got,
                             const TensorDictSpec& want);

}  // namespace rill

#endif  // RILL_SPECS_LAYOUT_DIFFERENCE_H_
