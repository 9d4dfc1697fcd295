// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_PIXEL_KERNELS_H_
#define RILL_TRANSFORMS_IMAGES_PIXEL_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/images/axis_weights.h"

// Maps of images for host and devices (device/kernels/kernel.h), a new pixel a
// thread. Pixels are those of gray_scale.cc and image_kernels.h bit for bit.

namespace rill::transforms_internal {

// Planes of three channels to one: uint8_t, float or double.
template <typename T>
struct GrayKernel {
  static constexpr const char* kName = sizeof(T) == 1   ? "gray_u8"
                                       : sizeof(T) == 4 ? "gray_f32"
                                                        : "gray_f64";
  using Shared = NoState;
  using Local = NoState;

  const T* from = nullptr;
  T* to = nullptr;
  int64_t images = 0;
  int64_t pixels = 0;  // Of a plane.

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    using Float = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = thread.index(); i < images * pixels;
         i += thread.grid_size()) {
      const T* const red = from + i + i / pixels * 2 * pixels;
      const Float r = Float(0.2989) * static_cast<Float>(red[0]);
      const Float g = Float(0.587) * static_cast<Float>(red[pixels]);
      const Float b = Float(0.114) * static_cast<Float>(red[2 * pixels]);
      to[i] = static_cast<T>((r + g) + b);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t bytes = images * pixels * int64_t{sizeof(T)};
    visit(from, 3 * bytes);
    visit(to, bytes);
  }
};

// Sides of a plane, before and after.
struct ResizeSides {
  int64_t from_height = 0;
  int64_t from_width = 0;
  int64_t to_height = 0;
  int64_t to_width = 0;
};

// The pixel that new pixel `i` is; in float32, as torch computes it.
constexpr float NearestScale(int64_t from, int64_t to) {
  return static_cast<float>(from) / static_cast<float>(to);
}
constexpr int64_t NearestPixel(int64_t i, int64_t from, float scale) {
  const auto pixel = static_cast<int64_t>(static_cast<float>(i) * scale);
  // The product may round up to the size of the image.
  return pixel < from - 1 ? pixel : from - 1;
}

// Of elements of so many bytes.
template <typename T>
struct NearestKernel {
  static constexpr const char* kName = sizeof(T) == 1   ? "nearest_1"
                                       : sizeof(T) == 2 ? "nearest_2"
                                       : sizeof(T) == 4 ? "nearest_4"
                                       : sizeof(T) == 8 ? "nearest_8"
                                                        : "nearest_16";
  using Shared = NoState;
  using Local = NoState;

  const T* from = nullptr;
  T* to = nullptr;
  int64_t images = 0;
  ResizeSides sides = {};

  constexpr int64_t elements() const {
    return images * sides.to_height * sides.to_width;
  }
  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    const float down = NearestScale(sides.from_height, sides.to_height);
    const float across = NearestScale(sides.from_width, sides.to_width);
    for (int64_t i = thread.index(); i < elements(); i += thread.grid_size()) {
      const int64_t x = i % sides.to_width;
      const int64_t line = i / sides.to_width;
      const int64_t y = line % sides.to_height;
      const int64_t image = line / sides.to_height;
      const int64_t row =
          image * sides.from_height + NearestPixel(y, sides.from_height, down);
      to[i] = from[row * sides.from_width +
                   NearestPixel(x, sides.from_width, across)];
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(from,
          images * sides.from_height * sides.from_width * int64_t{sizeof(T)});
    visit(to, elements() * int64_t{sizeof(T)});
  }
};

// Sums along the rows' axis, then along the columns': uint8_t or float.
template <typename T>
struct LinearKernel {
  static constexpr const char* kName =
      sizeof(T) == 1 ? "linear_u8" : "linear_f32";
  using Shared = NoState;
  using Local = NoState;

  const T* from = nullptr;
  T* to = nullptr;
  int64_t images = 0;
  AxisView rows = {};
  AxisView columns = {};

  constexpr int64_t elements() const { return images * rows.to * columns.to; }
  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < elements(); i += thread.grid_size()) {
      const int64_t x = i % columns.to;
      const int64_t line = i / columns.to;
      const int64_t y = line % rows.to;
      const int64_t image = line / rows.to;
      const T* const in = from +
                          (image * rows.from + rows.first[y]) * columns.from +
                          columns.first[x];
      float sum = 0;
      for (int64_t k = 0; k < columns.count[x]; ++k) {
        sum += columns.weights[x * columns.taps + k] * SumRow(in + k, y);
      }
      if constexpr (std::is_same_v<T, float>) {
        to[i] = sum;
      } else {
        // Half to even.
        to[i] = static_cast<T>(static_cast<int32_t>(std::nearbyint(sum)));
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(from, images * rows.from * columns.from * int64_t{sizeof(T)});
    visit(to, elements() * int64_t{sizeof(T)});
    for (AxisView* const axis : {&rows, &columns}) {
      visit(axis->first, axis->to * int64_t{sizeof(int64_t)});
      visit(axis->count, axis->to * int64_t{sizeof(int64_t)});
      visit(axis->weights, axis->to * axis->taps * int64_t{sizeof(float)});
    }
  }

 private:
  constexpr float SumRow(const T* in, int64_t y) const {
    float sum = 0;
    for (int64_t k = 0; k < rows.count[y]; ++k) {
      sum += rows.weights[y * rows.taps + k] *
             static_cast<float>(in[k * columns.from]);
    }
    return sum;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_IMAGES_PIXEL_KERNELS_H_
