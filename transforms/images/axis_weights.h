// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_AXIS_WEIGHTS_H_
#define RILL_TRANSFORMS_IMAGES_AXIS_WEIGHTS_H_

#include <cstdint>
#include <vector>

namespace rill::transforms_internal {

// AxisWeights as kernels see it: code for one instruction set is to call no
// function of std, which the linker might then take for all.
struct AxisView {
  int64_t from;
  int64_t to;
  int64_t taps;
  const int64_t* first;
  const int64_t* count;
  const float* weights;
};

// How `to` pixels are made of the `from` pixels along one axis of an image. New
// pixel i is the sum of weights[i * taps + k] times pixel first[i] + k, over k
// < count[i].
struct AxisWeights {
  int64_t from = 0;
  int64_t to = 0;
  int64_t taps = 0;
  std::vector<int64_t> first = {};
  std::vector<int64_t> count = {};  // 1 .. taps.
  // At least 0. The sum of each pixel's in float32, added in their order, is
  // at most 1: so values in [-1, 1] stay there.
  std::vector<float> weights = {};

  // Valid as long as this is.
  AxisView view() const {
    return {from, to, taps, first.data(), count.data(), weights.data()};
  }
};

// Linear interpolation between the centres of pixels. With `antialias` a pixel
// of a smaller image is made of all those that it covers.
// from > 0; to in [1, 65536], so that float32 tells new pixels apart.
// Thread-safety: thread-safe. Cost: O(from + to).
AxisWeights LinearWeights(int64_t from, int64_t to, bool antialias);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_IMAGES_AXIS_WEIGHTS_H_
