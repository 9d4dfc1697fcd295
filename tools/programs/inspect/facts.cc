// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/facts.h"

#include <algorithm>

namespace rill::inspect {

void Spread::Add(double value, int64_t times) {
  min = count == 0 ? value : std::min(min, value);
  max = count == 0 ? value : std::max(max, value);
  total += value * static_cast<double>(times);
  count += times;
}

int64_t Facts::live() const {
  int64_t live = 0;
  for (size_t i = 0; i < written.size(); ++i) live += written[i] - oldest[i];
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
