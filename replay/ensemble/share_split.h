// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_
#define RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rill::replay_internal {

// Divides `items` >= 0 among n parts by their shares (>= 0, sum 1) so that it
// is exact over all calls: `carry`, one a part, 0 at first, is what parts are
// owed, share x items so far less what they had. With shares that stay, carry
// is below 1 - 1/(2n - 2) either way after every call, whatever the numbers of
// items were (n > 1); with two parts at most 1/2 also where shares change. So a
// split that can be whole is, and a part whose share of a batch is below one
// item has one every so often. A part of share 0 has none. The same carry,
// items and shares give the same split on every machine.
//
// Source: R. Tijdeman, "The chairman assignment problem", Discrete Mathematics
//   32 (1980): each item goes to that part, of those that are owed 1/(2n - 2)
//   with it, which would first be owed too much without it.
// Cost: O(items x parts).
void SplitByShares(int64_t items, absl::Span<const double> shares,
                   absl::Span<double> carry, std::vector<int64_t>* counts);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ENSEMBLE_SHARE_SPLIT_H_
