// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_
#define RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_

#include <algorithm>
#include <cstdint>

namespace rill {

// Which rows of a trajectory can be the first of what is drawn, for slices of
// `length` rows: always its first Count() ones.
//
// Thread-safety: immutable.
struct StartRule {
  int64_t length = 1;  // >= 1; 1 makes every row a start.
  // Trajectories that are shorter have none; else their first row is one.
  bool is_strict = true;
  // How many rows a slice may lack at its end, in [0, length).
  int64_t overhang = 0;
  // Only the first row is a start.
  bool only_first = false;
  // Only trajectories whose beginning is there (they are not cut), or whose end
  // is (they are closed).
  bool needs_beginning = false;
  bool needs_end = false;
  // The index keeps how long the longest of those with starts is.
  bool keeps_longest = false;

  // For a trajectory of `rows` >= 0 rows. Never more than those; grows with
  // them.
  int64_t Count(int64_t rows, bool is_cut, bool is_closed) const {
    if (rows < (is_strict ? length : 1)) return 0;
    if ((needs_beginning && is_cut) || (needs_end && !is_closed)) return 0;
    if (only_first) return 1;
    const int64_t inside = std::max<int64_t>(rows - length, 0);
    return std::min(inside + overhang, rows - 1) + 1;
  }
};

}  // namespace rill

#endif  // RILL_SAMPLERS_TRAJECTORIES_START_RULE_H_
