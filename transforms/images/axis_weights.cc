// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/axis_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill::transforms_internal {
namespace {

// The weights of one pixel, scaled to the sum 1 and rounded. Rounding may carry
// the sum past 1: then the largest becomes smaller.
void PutWeights(const std::vector<double>& exact, float* weights) {
  double total = 0;
  for (const double weight : exact) total += weight;
  for (size_t k = 0; k < exact.size(); ++k) {
    weights[k] = static_cast<float>(exact[k] / total);
  }
  float* const end = weights + exact.size();
  const auto sum = [&] {
    float added = 0;
    for (const float* at = weights; at != end; ++at) added += *at;
    return added;
  };
  while (sum() > 1) {
    float* const largest = std::max_element(weights, end);
    *largest = std::nextafter(*largest, 0.0f);
  }
}

}  // namespace

AxisWeights LinearWeights(int64_t from, int64_t to, bool antialias) {
  // In float32, as torch computes where a pixel lies.
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  // Half of the width of a triangle that stands over each new pixel.
  const double reach = antialias ? std::max<double>(scale, 1) : 1;
  AxisWeights axis = {
      .from = from,
      .to = to,
      .taps = std::min(from, 2 * static_cast<int64_t>(std::ceil(reach)) + 1)};
  axis.weights.resize(static_cast<size_t>(to * axis.taps));
  std::vector<double> exact;
  for (int64_t i = 0; i < to; ++i) {
    // In units of old pixels, whose centres lie at .5.
    const double centre = (static_cast<float>(i) + 0.5f) * scale;
    auto begin =
        std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    const auto end = std::min<int64_t>(
        {static_cast<int64_t>(centre + reach + 0.5), from, begin + axis.taps});
    exact.clear();
    for (int64_t at = begin; at < end; ++at) {
      const double distance = std::abs(static_cast<double>(at) + 0.5 - centre);
      exact.push_back(std::max(0.0, 1 - distance / reach));
    }
    // Pixels without weight are not looked at: they may be infinite.
    while (exact.back() == 0) exact.pop_back();
    while (exact.front() == 0) {
      exact.erase(exact.begin());
      ++begin;
    }
    axis.first.push_back(begin);
    axis.count.push_back(static_cast<int64_t>(exact.size()));
    PutWeights(exact, axis.weights.data() + i * axis.taps);
  }
  return axis;
}

}  // namespace rill::transforms_internal
