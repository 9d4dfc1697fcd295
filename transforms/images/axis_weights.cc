// SPDX-License-Identifier: Apache-2.0
// The interpolation of torch, whose antialiasing is that of Pillow: a triangle
// over the centre of each new pixel. Half of its width is the distance between
// new pixels, at least one old pixel. The weights of a new pixel are the
// triangle at the centres of the old ones.
#include "rill/transforms/images/axis_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill::transforms_internal {
namespace {

// The weights of one pixel, scaled to the sum 1 and rounded. The kernels add
// the products in this order, so the sum of the float32 weights in that order
// bounds the result. Rounding may carry it past 1: then the largest weight
// becomes smaller by one unit, which changes it least.
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
  // `taps` is room for every old pixel whose centre may lie under the triangle.
  AxisWeights axis = {
      .from = from,
      .to = to,
      .taps = std::min(from, 2 * static_cast<int64_t>(std::ceil(reach)) + 1)};
  axis.weights.resize(static_cast<size_t>(to * axis.taps));
  std::vector<double> exact;
  for (int64_t i = 0; i < to; ++i) {
    // In units of old pixels, whose centres lie at .5.
    const double centre = (static_cast<float>(i) + 0.5f) * scale;
    // Truncation is rounding down here, as max clamps what is below 0.
    auto begin =
        std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    // begin + taps: a rounded centre may not reach one pixel further than the
    // table has room for.
    const auto end = std::min<int64_t>(
        {static_cast<int64_t>(centre + reach + 0.5), from, begin + axis.taps});
    exact.clear();
    for (int64_t at = begin; at < end; ++at) {
      const double distance = std::abs(static_cast<double>(at) + 0.5 - centre);
      exact.push_back(std::max(0.0, 1 - distance / reach));
    }
    // Pixels without weight are not looked at: they may be infinite, and 0
    // times infinity is NaN. One pixel has a weight always: some centre is at
    // most half a pixel away.
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
