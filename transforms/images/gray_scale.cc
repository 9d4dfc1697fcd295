// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/gray_scale.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/images/image_kernels.h"
#include "rill/transforms/images/pixel_kernels.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

// Three planes, one behind the other, to one.
template <typename T>
void GrayOf(const T* red, int64_t pixels, T* gray) {
  transforms_internal::GrayOfRgb(red, red + pixels, red + 2 * pixels, pixels,
                                 gray);
}

// float64 has no vector kernel. The target is compiled without contraction, so
// that each product is rounded as torch does.
void GrayOf(const double* red, int64_t pixels, double* gray) {
  for (int64_t i = 0; i < pixels; ++i) {
    gray[i] =
        0.2989 * red[i] + 0.587 * red[pixels + i] + 0.114 * red[2 * pixels + i];
  }
}

// Calls fn(T()) with the C++ type of the dtypes that there are; false else.
template <typename Fn>
bool WithPixel(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kUInt8:
      fn(uint8_t());
      return true;
    case DType::kFloat32:
      fn(float());
      return true;
    case DType::kFloat64:
      fn(double());
      return true;
    default:
      return false;
  }
}

class GrayScaleMap final : public RowMap {
 public:
  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    // The gray of three equal values. Weights are positive, so gray is
    // monotonic in each channel, and the gray of any pixel lies between those
    // of the bounds.
    const auto gray_of = [&leaf](double value) {
      WithPixel(leaf.dtype, [&value](auto zero) {
        using T = decltype(zero);
        // Bounds of uint8 may lie outside of 0 .. 255; the cast would be
        // undefined.
        if (std::is_integral_v<T>) value = std::clamp(value, 0.0, 255.0);
        const T pixel[3] = {static_cast<T>(value), static_cast<T>(value),
                            static_cast<T>(value)};
        T gray;
        GrayOf(pixel, 1, &gray);
        value = static_cast<double>(gray);
      });
      return value;
    };
    if (rank < 3 || leaf.shape[rank - 3] != 3 || leaf.shape[rank - 2] == 0 ||
        leaf.shape[rank - 1] == 0 || !WithPixel(leaf.dtype, [](auto) {})) {
      return transforms_internal::Misfit(
          leaf,
          "uint8, float32 or float64 [..., 3, height, width], both > 0; "
          "ToTensorImage puts the channels there");
    }
    const Shape shape = leaf.shape.WithSize(rank - 3, 1);
    // Bounds of each element would give other bounds for each pixel; they are
    // given up.
    if (leaf.domain == LeafSpec::Domain::kBounded && leaf.lows() == nullptr) {
      return LeafSpec::Bounded(leaf.dtype, shape, gray_of(leaf.low),
                               gray_of(leaf.high));
    }
    return LeafSpec::Unbounded(leaf.dtype, shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int rank = shape.rank();
    const int64_t pixels = shape[rank - 2] * shape[rank - 1];
    const int64_t images = count * shape.Prefix(rank - 3).num_elements();
    WithPixel(dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* const in = reinterpret_cast<const T*>(from);
      T* const out = reinterpret_cast<T*>(to);
      for (int64_t i = 0; i < images; ++i) {
        GrayOf(in + i * 3 * pixels, pixels, out + i * pixels);
      }
    });
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const Shape shape = rows->shape();
    const int rank = shape.rank();
    const int64_t pixels = shape[rank - 2] * shape[rank - 1];
    const int64_t images =
        rows->count() * shape.Prefix(rank - 3).num_elements();
    return rows->Launch(
        rows->dtype(), shape.WithSize(rank - 3, 1),
        [&](const std::byte* from, std::byte* to, const Stream& stream) {
          absl::Status status;
          WithPixel(rows->dtype(), [&](auto zero) {
            using T = decltype(zero);
            status = LaunchKernel(
                transforms_internal::GrayKernel<T>{
                    .from = reinterpret_cast<const T*>(from),
                    .to = reinterpret_cast<T*>(to),
                    .images = images,
                    .pixels = pixels},
                GridFor(images * pixels), stream);
          });
          return status;
        });
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> GrayScale::Create(
    const Options& options) {
  return RowwiseTransform::Make("GrayScale",
                                {.map = std::make_shared<GrayScaleMap>(),
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys});
}

}  // namespace rill
