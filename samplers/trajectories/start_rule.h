// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_
#define RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_

#include <algorithm>
#include <cstdint>

namespace rill {

// Which rows of a trajectory can be the first of a slice of `length` rows:
// always its first Count() ones.
//
// Thread-safety: immutable.
struct StartRule {
  int64_t length = 1;  // >= 1; 1 makes every row a start.
  // Trajectories that are shorter have none; else their first row is one.
  bool is_strict = true;
  // How many rows a slice may lack at its end, in [0, length).
  int64_t overhang = 0;
  // Only the first row of a trajectory whose beginning is there.
  bool only_beginnings = false;

  // For a trajectory of `rows` >= 1 rows. Never more than those; grows with
  // them.
  int64_t Count(int64_t rows, bool is_cut) const {
    if (is_strict && rows < length) return 0;
    if (only_beginnings) return is_cut ? 0 : 1;
    const int64_t inside = std::max<int64_t>(rows - length, 0);
    return std::min(inside + overhang, rows - 1) + 1;
  }
};

}  // namespace rill

#endif  // RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_
