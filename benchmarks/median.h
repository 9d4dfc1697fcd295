// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_MEDIAN_H_
#define RILL_BENCHMARKS_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rill {

// The middle of some times, at least one. Runs that page in memory, or that the
// system interrupts, are slower by orders of magnitude and move a mean.
inline double MedianOf(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace rill

#endif  // RILL_BENCHMARKS_MEDIAN_H_
