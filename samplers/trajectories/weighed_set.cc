// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/weighed_set.h"

#include <cstddef>

namespace rill::samplers_internal {
namespace {

constexpr int kLogFanOut = 4;
constexpr size_t kFanOut = size_t{1} << kLogFanOut;

}  // namespace

void WeighedSet::Set(int32_t member, int64_t weight) {
  const auto i = static_cast<size_t>(member);
  const bool is_member = i < positions_.size() && positions_[i] >= 0;
  if (!is_member && weight == 0) return;
  if (!is_member) PushBack(member);
  const int64_t position = positions_[i];
  const int64_t change = weight - levels_[0][position];
  if (change == 0) return;
  if (weight > 0) {
    AddAt(position, change);
    return;
  }
  // The last member takes the place, with its weight, before the end is cut
  // off. Sums above stay right at each step.
  const int64_t last = size() - 1;
  if (position != last) {
    AddAt(position, levels_[0][last] - levels_[0][position]);
    members_[position] = members_[last];
    positions_[members_[position]] = static_cast<int32_t>(position);
  }
  AddAt(last, -levels_[0][last]);
  positions_[i] = -1;
  PopBack();
}

int64_t WeighedSet::WeightOf(int32_t member) const {
  const auto i = static_cast<size_t>(member);
  if (i >= positions_.size() || positions_[i] < 0) return 0;
  return levels_[0][positions_[i]];
}

WeighedSet::Hit WeighedSet::Find(int64_t n) const {
  size_t at = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    at <<= kLogFanOut;
    const std::vector<int64_t>& sums = levels_[level];
    // At most 16 numbers, two cache lines. Sums are integers, so n always ends
    // within one of them.
    while (n >= sums[at]) n -= sums[at++];
  }
  return {.member = members_[at], .rest = n};
}

void WeighedSet::Reorder(absl::Span<const int32_t> order) {
  std::vector<int64_t> weights;
  // Weights first: Clear forgets them.
  weights.reserve(order.size());
  for (const int32_t member : order) weights.push_back(WeightOf(member));
  Clear();
  for (size_t i = 0; i < order.size(); ++i) Set(order[i], weights[i]);
}

void WeighedSet::Clear() {
  members_.clear();
  positions_.clear();
  levels_.assign(1, {});
  total_ = 0;
}

int64_t WeighedSet::memory_bytes() const {
  size_t bytes = (members_.capacity() + positions_.capacity()) * 4;
  for (const auto& level : levels_) bytes += level.capacity() * 8;
  return static_cast<int64_t>(bytes);
}

void WeighedSet::AddAt(int64_t position, int64_t change) {
  total_ += change;
  for (std::vector<int64_t>& level : levels_) {
    // A change, not a sum of children: integers do not drift.
    level[position] += change;
    position >>= kLogFanOut;
  }
}

void WeighedSet::PushBack(int32_t member) {
  if (static_cast<size_t>(member) >= positions_.size()) {
    positions_.resize(static_cast<size_t>(member) + 1, -1);
  }
  positions_[member] = static_cast<int32_t>(members_.size());
  members_.push_back(member);
  size_t last = members_.size() - 1;
  for (std::vector<int64_t>& level : levels_) {
    if (level.size() <= last) level.push_back(0);
    last >>= kLogFanOut;
  }
  if (levels_.back().size() <= kFanOut) return;
  // The top level has its 17th number, which is 0 still.
  int64_t sum = 0;
  for (const int64_t weight : levels_.back()) sum += weight;
  levels_.push_back({sum, 0});
}

void WeighedSet::PopBack() {
  members_.pop_back();
  size_t size = members_.size();
  for (std::vector<int64_t>& level : levels_) {
    level.resize(size);
    size = (size + kFanOut - 1) >> kLogFanOut;
  }
  // The number of levels is a function of the size, as in PushBack.
  while (levels_.size() > 1 && levels_[levels_.size() - 2].size() <= kFanOut) {
    levels_.pop_back();
  }
}

}  // namespace rill::samplers_internal
