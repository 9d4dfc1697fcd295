// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/share_split.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace rill::replay_internal {
namespace {

// The error that rounding may cause in a sum of shares. Differences below it
// decide nothing.
constexpr double kNoise = 1e-12;

// The part whose turn it is; `carry` holds its share of this item already.
size_t NextPart(absl::Span<const double> shares,
                absl::Span<const double> carry) {
  const double due = 1.0 / (2.0 * static_cast<double>(shares.size()) - 2.0);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double earliest = kNever;
  size_t next = 0;
  double most_owed = -kNever;
  size_t most = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    if (carry[i] > most_owed + kNoise) {
      most_owed = carry[i];
      most = i;
    }
    if (carry[i] < due - kNoise) continue;
    // After so many more items without this one the part lags by more than the
    // bound of carry. The earliest deadline comes first.
    const double deadline = (1 - due - carry[i]) / shares[i];
    if (deadline < earliest - kNoise || earliest == kNever) {
      earliest = deadline;
      next = i;
    }
  }
  // Nobody is due where parts that now have share 0 are owed all there is.
  return earliest == kNever ? most : next;
}

}  // namespace

void SplitByShares(int64_t items, absl::Span<const double> shares,
                   absl::Span<double> carry, std::vector<int64_t>* counts) {
  counts->assign(shares.size(), 0);
  // The rule divides by 2n - 2.
  if (shares.size() == 1) {
    (*counts)[0] = items;
    return;
  }
  for (int64_t item = 0; item < items; ++item) {
    for (size_t i = 0; i < shares.size(); ++i) carry[i] += shares[i];
    const size_t part = NextPart(shares, carry);
    carry[part] -= 1;
    ++(*counts)[part];
  }
  // Where a split is even, rounding is swept out, so that it does not add up
  // over a run.
  for (double& owed : carry) {
    if (std::abs(owed) < kNoise) owed = 0;
  }
}

}  // namespace rill::replay_internal
