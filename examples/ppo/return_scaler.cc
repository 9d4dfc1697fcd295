// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/return_scaler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace rill::ppo {

ReturnScaler::ReturnScaler(int64_t lanes, double gamma)
    : gamma_(gamma), returns_(lanes) {}

double ReturnScaler::deviation() const { return std::sqrt(variance_ + 1e-8); }

// Moments of the lanes' returns, merged into those so far.
void ReturnScaler::Learn() {
  const double lanes = static_cast<double>(returns_.size());
  double mean = 0, squares = 0;
  for (double r : returns_) mean += r / lanes;
  for (double r : returns_) squares += (r - mean) * (r - mean);
  // Chan, Golub and LeVeque, 1979: squares of both parts about their means, and
  // the distance of the means.
  const double total = count_ + lanes;
  const double delta = mean - mean_;
  variance_ =
      (variance_ * count_ + squares + delta * delta * count_ * lanes / total) /
      total;
  mean_ += delta * lanes / total;
  count_ = total;
}

void ReturnScaler::Scale(absl::Span<const float> reward,
                         absl::Span<const bool> done,
                         absl::Span<float> scaled) {
  const int64_t lanes = static_cast<int64_t>(returns_.size());
  const int64_t time = static_cast<int64_t>(reward.size()) / lanes;
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // The sum looks back and is no return; Gymnasium takes its deviation for
      // that of returns.
      returns_[lane] = returns_[lane] * gamma_ + reward[lane * time + t];
    }
    // Before the division, as in Gymnasium.
    Learn();
    const double divisor = deviation();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t at = lane * time + t;
      scaled[at] =
          static_cast<float>(std::clamp(reward[at] / divisor, -10.0, 10.0));
      if (done[at]) returns_[lane] = 0;
    }
  }
}

}  // namespace rill::ppo
