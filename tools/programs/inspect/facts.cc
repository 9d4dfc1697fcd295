// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/facts.h"

#include <algorithm>
#include <limits>

namespace rill::inspect {

int64_t SumOfCounts(int64_t a, int64_t b) {
  return a > std::numeric_limits<int64_t>::max() - b
             ? std::numeric_limits<int64_t>::max()
             : a + b;
}

void Spread::Add(double value, int64_t times) {
  min = count == 0 ? value : std::min(min, value);
  max = count == 0 ? value : std::max(max, value);
  total += value * static_cast<double>(times);
  count = SumOfCounts(count, times);
}

int64_t Facts::live() const {
  int64_t live = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    live = SumOfCounts(live, written[i] - oldest[i]);
  }
  return live;
}

int64_t Facts::age() const {
  int64_t age = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    age = std::max(age, written[i] - oldest[i] - 1);
  }
  return age;
}

}  // namespace rill::inspect
