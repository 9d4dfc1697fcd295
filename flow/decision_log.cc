// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/decision_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr size_t kFixed = 4;  // Numbers before the versions.
// Beyond what a run can have, and far enough from the ends of int64 for sums.
constexpr int64_t kMostSteps = int64_t{1} << 31;
constexpr int64_t kMostFrames = int64_t{1} << 61;

bool IsIn(int64_t value, int64_t least, int64_t most) {
  return least <= value && value <= most;
}

}  // namespace

std::vector<int64_t> Arrival::ToNumbers() const {
  std::vector<int64_t> numbers = {worker, sequence, steps, run_before};
  for (const Versions& run : versions) {
    numbers.push_back(run.steps);
    numbers.push_back(run.version);
  }
  return numbers;
}

absl::StatusOr<Arrival> Arrival::FromNumbers(
    absl::Span<const int64_t> numbers) {
  const auto refuse = [&] {
    return DataLoss("Arrival::FromNumbers: got ", numbers.size(),
                    " numbers that are no arrival's, want worker, sequence, "
                    "steps, frames, and versions of all steps");
  };
  if (numbers.size() < kFixed || numbers.size() % 2 != 0) return refuse();
  Arrival arrival = {.worker = numbers[0],
                     .sequence = numbers[1],
                     .steps = numbers[2],
                     .run_before = numbers[3]};
  if (!IsIn(arrival.worker, 0, kMostSteps) ||
      !IsIn(arrival.steps, 0, kMostSteps) ||
      !IsIn(arrival.run_before, -kMostFrames, kMostFrames)) {
    return refuse();
  }
  int64_t left = arrival.steps;
  for (size_t i = kFixed; i < numbers.size(); i += 2) {
    if (numbers[i] <= 0 || numbers[i] > left) return refuse();
    left -= numbers[i];
    arrival.versions.push_back(
        {.steps = numbers[i], .version = numbers[i + 1]});
  }
  if (left != 0) return refuse();
  return arrival;
}

PriorityCounts PriorityCounts::Of(absl::Span<const float> priorities) {
  // By the exponent's bits; what is below the normal numbers is in the lowest.
  // Neighbours are often in one interval; in tables of their own none waits.
  constexpr size_t kTables = 4;
  std::array<std::array<int32_t, 256>, kTables> tables = {};
  PriorityCounts all = {.rows = static_cast<int64_t>(priorities.size())};
  uint32_t least = tables[0].size(), most = 0;
  const auto count = [&](size_t i, size_t table) {
    if (priorities[i] > 0) {
      const uint32_t exponent = std::bit_cast<uint32_t>(priorities[i]) >> 23;
      ++tables[table][exponent];
      least = std::min(least, exponent);
      most = std::max(most, exponent);
    } else {
      ++all.zeros;
    }
  };
  size_t i = 0;
  for (; i + kTables <= priorities.size(); i += kTables) {
    count(i, 0);
    count(i + 1, 1);
    count(i + 2, 2);
    count(i + 3, 3);
  }
  for (; i < priorities.size(); ++i) count(i, 0);
  if (all.zeros == all.rows) return all;
  constexpr int64_t kBias = 127;
  all.first = int64_t{least} - kBias;
  all.counts.reserve(most + 1 - least);
  for (uint32_t exponent = least; exponent <= most; ++exponent) {
    int64_t count = 0;
    for (const auto& table : tables) count += table[exponent];
    all.counts.push_back(count);
  }
  return all;
}

std::vector<int64_t> PriorityCounts::ToNumbers() const {
  std::vector<int64_t> numbers;
  numbers.reserve(3 + counts.size());
  numbers.assign({rows, zeros, first});
  numbers.insert(numbers.end(), counts.begin(), counts.end());
  return numbers;
}

absl::StatusOr<PriorityCounts> PriorityCounts::FromNumbers(
    absl::Span<const int64_t> numbers) {
  constexpr int64_t kMostExponent = 128, kMostRows = int64_t{1} << 48;
  const auto is_count = [](int64_t count) { return IsIn(count, 0, kMostRows); };
  if (numbers.size() < 3 || numbers.size() > 3 + 256 || !is_count(numbers[0]) ||
      !is_count(numbers[1]) ||
      !IsIn(numbers[2], -kMostExponent, kMostExponent) ||
      !std::all_of(numbers.begin() + 3, numbers.end(), is_count)) {
    return DataLoss("PriorityCounts::FromNumbers: got ", numbers.size(),
                    " numbers that are none of a histogram, want rows, zeros, "
                    "an exponent and counts");
  }
  return PriorityCounts{.rows = numbers[0],
                        .zeros = numbers[1],
                        .first = numbers[2],
                        .counts = {numbers.begin() + 3, numbers.end()}};
}

}  // namespace rill
