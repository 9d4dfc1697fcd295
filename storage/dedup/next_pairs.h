// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DEDUP_NEXT_PAIRS_H_
#define RILL_STORAGE_DEDUP_NEXT_PAIRS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "rill/specs/spec.h"

namespace rill::storage_internal {

// Leaves K and next/K of a spec, in the order of its leaves.
struct NextPair {
  size_t leaf = 0;
  size_t next = 0;
  friend bool operator==(const NextPair&, const NextPair&) = default;
};

// The pairs K, next/K for which one leaf can be stored. Dtype and shape are the
// same, and a row takes more than the 4 bytes that say where the other one is.
// K is no flag and no reward (done, terminated, truncated, reward, in any
// dictionary), and next/K is none of `kept`.
std::vector<NextPair> FindNextPairs(const TensorDictSpec& spec,
                                    absl::Span<const size_t> kept);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DEDUP_NEXT_PAIRS_H_
