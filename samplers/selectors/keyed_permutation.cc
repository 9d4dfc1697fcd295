// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/keyed_permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace rill::samplers_internal {
namespace {

// Apart from the draws of batches. Part of the reproducibility contract.
constexpr uint16_t kSubstream = 2;
constexpr int64_t kRounds = 8;

}  // namespace

void KeyedPermutation::Set(uint64_t seed, uint64_t number, int64_t size) {
  if (seed == rng_.seed() && number == number_ && size == size_) return;
  rng_ = Rng(seed, RngStream::kSampler, kSubstream);
  number_ = number;
  size_ = size;
  list_.clear();
  if (size > kListed) {
    // Nearly square, so that rows_ * columns_ is less than `size` + rows_. Few
    // values leave [0, size), and the loop of At seldom runs twice.
    rows_ = static_cast<int64_t>(std::ceil(std::sqrt(size)));
    columns_ = (size + rows_ - 1) / rows_;
    return;
  }
  list_.resize(size);
  std::iota(list_.begin(), list_.end(), 0);
  // Fisher and Yates: each order has the same probability.
  for (int64_t i = size - 1; i > 0; --i) {
    std::swap(list_[i],
              list_[rng_.UniformInt(number, static_cast<uint32_t>(i), i + 1)]);
  }
}

int64_t KeyedPermutation::Round(int64_t round, int64_t half,
                                int64_t bound) const {
  return rng_.UniformInt(number_ * kRounds + round, static_cast<uint32_t>(half),
                         bound);
}

int64_t KeyedPermutation::At(int64_t place) const {
  if (!list_.empty()) return list_[place];
  // Walking on from a value outside leads back into [0, size), and to another
  // value for each place, since the network is a permutation. Sums modulo the
  // sides stand in for xor, as the sides are no powers of two.
  int64_t value = place;
  do {
    int64_t row = value / columns_;
    int64_t column = value % columns_;
    for (int64_t round = 0; round < kRounds; round += 2) {
      row += Round(round, column, rows_);
      if (row >= rows_) row -= rows_;
      column += Round(round + 1, row, columns_);
      if (column >= columns_) column -= columns_;
    }
    value = row * columns_ + column;
  } while (value >= size_);
  return value;
}

}  // namespace rill::samplers_internal
