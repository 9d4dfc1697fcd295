// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/crop.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

absl::Status CheckSize(absl::string_view caller, int64_t w,
                       const std::optional<int64_t>& h) {
  if (w >= 1 && h.value_or(w) >= 1) return absl::OkStatus();
  return InvalidArgument(caller, ": w and h: got ", w, " and ", h.value_or(w),
                         ", want both > 0");
}

// No RowStep of kCrop, as the place depends on the size of the image.
class CenterCropMap final : public RowMap {
 public:
  CenterCropMap(int64_t height, int64_t width)
      : height_(height), width_(width) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    if (rank < 2 || leaf.shape[rank - 2] < height_ ||
        leaf.shape[rank - 1] < width_) {
      return transforms_internal::Misfit(
          leaf, absl::StrCat("images of at least ", height_, " rows and ",
                             width_, " columns"));
    }
    RILL_RETURN_IF_ERROR(transforms_internal::CheckChannelsFirst(leaf));
    return transforms_internal::WithShape(
        leaf, leaf.shape.Prefix(rank - 2).Concat({height_, width_}));
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int rank = shape.rank();
    transforms_internal::CropRows({.top = FirstOf(shape[rank - 2], height_),
                                   .left = FirstOf(shape[rank - 1], width_),
                                   .height = height_,
                                   .width = width_},
                                  dtype, shape, count, from, to);
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const Shape shape = rows->shape();
    const int rank = shape.rank();
    const int64_t top = FirstOf(shape[rank - 2], height_);
    const int64_t left = FirstOf(shape[rank - 1], width_);
    RILL_RETURN_IF_ERROR(rows->Slice(rank - 2, top, top + height_));
    return rows->Slice(rank - 1, left, left + width_);
  }

 private:
  // Half of what is left, rounded half to even.
  // TorchRL's CenterCrop rounds so. left / 2 rounds down, which is right unless
  // left is 3 modulo 4: then the even number is above.
  static int64_t FirstOf(int64_t from, int64_t to) {
    const int64_t left = from - to;
    return left / 2 + (left % 4 == 3 ? 1 : 0);
  }

  const int64_t height_;
  const int64_t width_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Crop::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "Crop::Create";
  RILL_RETURN_IF_ERROR(CheckSize(kCreate, options.w, options.h));
  if (options.top < 0 || options.left < 0) {
    return InvalidArgument(kCreate, ": top and left: got ", options.top,
                           " and ", options.left, ", want both >= 0");
  }
  auto map = MakeRowStep({.kind = RowStep::Kind::kCrop,
                          .top = options.top,
                          .left = options.left,
                          .height = options.h.value_or(options.w),
                          .width = options.w});
  RILL_RETURN_IF_ERROR(map.status()) << "in " << kCreate;
  return RowwiseTransform::Make("Crop",
                                {.map = *std::move(map),
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys},
                                OptionValues()
                                    .Int("w", options.w)
                                    .Int("h", options.h.value_or(options.w))
                                    .Int("top", options.top)
                                    .Int("left", options.left));
}

absl::StatusOr<std::unique_ptr<RowwiseTransform>> CenterCrop::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckSize("CenterCrop::Create", options.w, options.h));
  const int64_t height = options.h.value_or(options.w);
  return RowwiseTransform::Make(
      "CenterCrop",
      {.map = std::make_shared<CenterCropMap>(height, options.w),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys},
      OptionValues().Int("w", options.w).Int("h", height));
}

}  // namespace rill
