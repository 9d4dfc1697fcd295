// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/priority_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

// `row` may be reordered.
float Reduce(absl::Span<float> row, PriorityReduction reduction) {
  // NaN compares with nothing, so none of the algorithms below gives a defined
  // result for it.
  for (const float priority : row) {
    if (std::isnan(priority)) return priority;
  }
  switch (reduction) {
    case PriorityReduction::kMax:
      return *std::max_element(row.begin(), row.end());
    case PriorityReduction::kMin:
      return *std::min_element(row.begin(), row.end());
    case PriorityReduction::kMean:
      return static_cast<float>(std::accumulate(row.begin(), row.end(), 0.0) /
                                static_cast<double>(row.size()));
    case PriorityReduction::kMedian: {
      const auto middle = row.begin() + (row.size() - 1) / 2;
      std::nth_element(row.begin(), middle, row.end());
      return *middle;
    }
  }
  return std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

absl::Status ReducePriorities(absl::Span<const float> priorities,
                              PriorityReduction reduction,
                              absl::Span<float> reduced) {
  const size_t items = reduced.size();
  const bool fits = items == 0
                        ? priorities.empty()
                        : !priorities.empty() && priorities.size() % items == 0;
  if (!fits) {
    return InvalidArgument("ReducePriorities: priorities: got ",
                           priorities.size(), ", want a multiple of the ",
                           items, " items");
  }
  if (items == 0) return absl::OkStatus();
  const size_t rows = priorities.size() / items;
  std::vector<float> row(rows);
  for (size_t i = 0; i < items; ++i) {
    std::copy_n(priorities.begin() + i * rows, rows, row.begin());
    reduced[i] = Reduce(absl::MakeSpan(row), reduction);
  }
  return absl::OkStatus();
}

}  // namespace rill
