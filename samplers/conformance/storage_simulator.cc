// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/conformance/storage_simulator.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"

namespace rill {

namespace {

constexpr int64_t kEpisode = 7;  // Steps.

}  // namespace

void StorageSimulator::BeginAppend(int64_t first_lane, int64_t num_lanes,
                                   int64_t steps,
                                   absl::Span<const double> priorities) {
  const int64_t dropped = std::max<int64_t>(steps - lanes().capacity, 0);
  int64_t row = 0;  // Of the call, those that are dropped included.
  size_t written = 0;
  const auto next = [&](int64_t lane) {
    const int64_t i = row++ % steps;
    const int64_t step = model_.begun(lane) + i;
    StorageModel::Value value = {.is_end = step % kEpisode == kEpisode - 1};
    if (i >= dropped && !priorities.empty()) {
      value.priority = priorities[written++];
    }
    return value;
  };
  model_.BeginAppend(first_lane, std::vector<int64_t>(num_lanes, steps), next);
}

void StorageSimulator::BeginOverwrite(absl::Span<const Slot> slots,
                                      bool replaces) {
  std::vector<StorageModel::Value> values;
  for (const Slot slot : slots) {
    values.push_back({.is_end = model_.is_end(slot)});
  }
  model_.BeginInPlace({slots.begin(), slots.end()}, values, {.ids = false},
                      replaces ? StorageModel::InPlace::kReplacement
                               : StorageModel::InPlace::kPart);
}

std::vector<Slot> StorageSimulator::Live() const {
  std::vector<Slot> slots = model_.Live();
  std::sort(slots.begin(), slots.end());
  return slots;
}

}  // namespace rill
