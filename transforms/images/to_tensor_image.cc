// SPDX-License-Identifier: Apache-2.0
// The image is transposed as it is stored, block by block, and each plane of a
// block is converted. So the transposition moves the fewest bytes, and the
// planes stay in the first cache between the two.
#include "rill/transforms/images/to_tensor_image.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/images/image_kernels.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_kernels.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

// Elements of a block. Its planes and the converted ones fit the processor's
// first cache: at most four planes of kBlock x kWidest bytes.
constexpr int64_t kBlock = 512;
constexpr int64_t kWidest = 8;  // Bytes of an element.

struct Plane {
  alignas(64) std::byte bytes[kBlock * kWidest];
};

// By a true division, so that the result is rounded once.
template <typename T>
void Divide(std::byte* values, int64_t count) {
  T* const at = reinterpret_cast<T*>(values);
  for (int64_t i = 0; i < count; ++i) at[i] /= 255;
}

class TensorImageMap final : public RowMap {
 public:
  explicit TensorImageMap(const ToTensorImage::Options& options)
      : from_int_(options.from_int),
        unsqueeze_(options.unsqueeze),
        dtype_(options.dtype),
        shape_tolerant_(options.shape_tolerant) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    if (rank < 3 || leaf.shape.Suffix(rank - 3).num_elements() == 0 ||
        !tensor_internal::HasArithmetic(leaf.dtype)) {
      return transforms_internal::Misfit(
          leaf,
          "[..., height, width, channels], all > 0, of a dtype with "
          "arithmetic");
    }
    Shape shape = leaf.shape;
    if (IsTransposed(shape)) {
      shape = shape.Prefix(rank - 3).Concat(
          {shape[rank - 1], shape[rank - 3], shape[rank - 2]});
    }
    if (unsqueeze_ && rank == 3) shape = Shape({1}).Concat(shape);
    const bool is_bounded =
        leaf.domain == LeafSpec::Domain::kBounded && leaf.lows() == nullptr;
    if (is_bounded) {
      return LeafSpec::Bounded(dtype_, shape, MapBound(leaf.dtype, leaf.low),
                               MapBound(leaf.dtype, leaf.high));
    }
    if (leaf.dtype == DType::kUInt8) {
      return LeafSpec::Bounded(dtype_, shape, 0, MapBound(leaf.dtype, 255));
    }
    return LeafSpec::Unbounded(dtype_, shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t elements = count * shape.num_elements();
    if (elements == 0) return absl::OkStatus();
    const int rank = shape.rank();
    const bool is_transposed = IsTransposed(shape);
    const int64_t channels = is_transposed ? shape[rank - 1] : 1;
    // Without a transposition all elements are one plane.
    const int64_t pixels =
        is_transposed ? shape[rank - 3] * shape[rank - 2] : elements;
    const int64_t image = channels * pixels;
    for (int64_t i = 0; i < elements; i += image) {
      MapImage(dtype, channels, pixels, from + i * DTypeSize(dtype),
               to + i * DTypeSize(dtype_));
    }
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const Shape shape = rows->shape();
    const DType from = rows->dtype();
    if (IsTransposed(shape)) {
      RILL_RETURN_IF_ERROR(rows->Add(channels_first_));
    }
    if (IsDivided(from)) {
      RILL_RETURN_IF_ERROR(rows->Cast(WideOf(from)));
      RILL_RETURN_IF_ERROR(rows->Divide255());
    }
    RILL_RETURN_IF_ERROR(rows->Cast(dtype_));
    if (!unsqueeze_ || shape.rank() != 3) return absl::OkStatus();
    return rows->Reshape(Shape({1}).Concat(rows->shape()));
  }

 private:
  // shape_tolerant leaves images alone whose last dimension is not 3.
  bool IsTransposed(const Shape& shape) const {
    return !shape_tolerant_ || shape[shape.rank() - 1] == 3;
  }
  bool IsDivided(DType from) const {
    return from_int_.value_or(!IsFloatingPoint(from));
  }
  // The dtype of the division.
  static DType WideOf(DType from) {
    return from == DType::kFloat64 ? from : DType::kFloat32;
  }

  // Maps a bound as the values are mapped: a float bound by float arithmetic.
  // The spec rounds it to `dtype_`.
  double MapBound(DType from, double bound) const {
    if (!IsDivided(from)) return bound;
    // Division by 255 is monotonic, and so is rounding: bounds stay bounds.
    if (WideOf(from) == DType::kFloat64) return bound / 255;
    return static_cast<float>(bound) / 255.0f;
  }

  void MapImage(DType dtype, int64_t channels, int64_t pixels,
                const std::byte* from, std::byte* to) const {
    const int64_t size = DTypeSize(dtype);
    const int64_t result = DTypeSize(dtype_);
    Plane planes[3];
    for (int64_t at = 0; at < pixels; at += kBlock) {
      const int64_t count = std::min(kBlock, pixels - at);
      const std::byte* const block = from + at * channels * size;
      // Bytes of three channels are the usual case: one pass makes all planes.
      const bool is_rgb = channels == 3 && dtype == DType::kUInt8;
      if (is_rgb) {
        transforms_internal::SplitRgb(
            reinterpret_cast<const uint8_t*>(block), count,
            reinterpret_cast<uint8_t*>(planes[0].bytes),
            reinterpret_cast<uint8_t*>(planes[1].bytes),
            reinterpret_cast<uint8_t*>(planes[2].bytes));
      }
      for (int64_t channel = 0; channel < channels; ++channel) {
        const std::byte* plane = block;
        if (is_rgb) {
          plane = planes[channel].bytes;
        } else if (channels > 1) {
          plane = planes[0].bytes;
          TakeChannel(size, channels, channel, count, block, planes[0].bytes);
        }
        Convert(dtype, count, plane, to + (channel * pixels + at) * result);
      }
    }
  }

  // One channel of a block to a plane, by loads and stores of the element's
  // size.
  static void TakeChannel(int64_t size, int64_t channels, int64_t channel,
                          int64_t count, const std::byte* from, std::byte* to) {
    transforms_internal::WithElement(size, [&](auto element) {
      constexpr auto kSize = static_cast<int64_t>(sizeof(element));
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * kSize, from + (i * channels + channel) * kSize,
                    sizeof(element));
      }
    });
  }

  // At most kBlock elements, from a plane to the result. Division happens in
  // `wide`, and only then values are rounded to `dtype_`.
  void Convert(DType dtype, int64_t count, const std::byte* from,
               std::byte* to) const {
    if (!IsDivided(dtype)) {
      CastElements(dtype, dtype_, from, to, count);
      return;
    }
    const DType wide = WideOf(dtype);
    Plane own;
    // Into the result where it has that dtype, else by way of a local plane.
    std::byte* const values = wide == dtype_ ? to : own.bytes;
    if (dtype == DType::kUInt8) {
      transforms_internal::UnitInterval(reinterpret_cast<const uint8_t*>(from),
                                        count,
                                        reinterpret_cast<float*>(values));
    } else {
      CastElements(dtype, wide, from, values, count);
      if (wide == DType::kFloat64) {
        Divide<double>(values, count);
      } else {
        Divide<float>(values, count);
      }
    }
    if (values != to) CastElements(wide, dtype_, values, to, count);
  }

  const std::optional<bool> from_int_;
  const bool unsqueeze_;
  const DType dtype_;
  const bool shape_tolerant_;
  const RowStep channels_first_ = {.kind = RowStep::Kind::kChannelsFirst};
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> ToTensorImage::Create(
    const Options& options) {
  if (!IsFloatingPoint(options.dtype)) {
    return InvalidArgument("ToTensorImage::Create: dtype: got ",
                           DTypeName(options.dtype), ", want floating point");
  }
  OptionValues values;
  if (options.from_int.has_value()) {
    values.Bool("from_int", *options.from_int);
  } else {
    values.None("from_int");
  }
  values.Bool("unsqueeze", options.unsqueeze)
      .Choice("dtype", DTypeName(options.dtype))
      .Bool("shape_tolerant", options.shape_tolerant);
  return RowwiseTransform::Make(
      "ToTensorImage",
      {.map = std::make_shared<TensorImageMap>(options),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys},
      values);
}

}  // namespace rill
