// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_
#define RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rill::replay_internal {

// Divides `items` >= 0 among n parts by their shares (>= 0, sum 1) so that it
// is exact over all calls. The `carry`, one a part, 0 at first, is what parts
// are owed: share x items so far less what they had. With shares that stay,
// carry is below 1 - 1/(2n - 2) either way after every call, whatever the
// numbers of items were (n > 1). With two parts it is at most 1/2, also where
// shares change. So a split that can be whole is, and a part whose share of a
// batch is below one item has one every so often. A part of share 0 has none.
// The same carry, items and shares give the same split on every machine.
//
// Source: R. Tijdeman, "The chairman assignment problem", Discrete Mathematics
//   32 (1980): each item goes to one of the parts that are owed 1/(2n - 2) with
//   it. It is the part that would first be owed too much without the item.
// Cost: O(items x parts).
void SplitByShares(int64_t items, absl::Span<const double> shares,
                   absl::Span<double> carry, std::vector<int64_t>* counts);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_
