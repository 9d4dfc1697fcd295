// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/crop.h"

#include <cstddef>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

absl::Status CheckSize(absl::string_view caller, int64_t w,
                       const std::optional<int64_t>& h) {
  if (w >= 1 && h.value_or(w) >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": w and h: got ", w, " and ", h.value_or(w), ", want both > 0"));
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
      return absl::InvalidArgumentError(
          absl::StrCat("got ", leaf.ToString(), ", want images of at least ",
                       height_, " rows and ", width_, " columns"));
    }
    // The step for this size says dtype, shape and domain.
    RILL_ASSIGN_OR_RETURN(
        const auto crop,
        MakeRowStep({.kind = RowStep::Kind::kCrop,
                     .top = FirstOf(leaf.shape[rank - 2], height_),
                     .left = FirstOf(leaf.shape[rank - 1], width_),
                     .height = height_,
                     .width = width_}));
    return crop->MapSpec(leaf);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int rank = shape.rank();
    const int64_t size = DTypeSize(dtype);
    const int64_t line = shape[rank - 1] * size;
    const int64_t width = width_ * size;
    const int64_t images = count * shape.Prefix(rank - 2).num_elements();
    const int64_t begin = FirstOf(shape[rank - 2], height_) * line +
                          FirstOf(shape[rank - 1], width_) * size;
    // A row of pixels is contiguous: one copy each.
    for (int64_t i = 0; i < images; ++i, from += shape[rank - 2] * line) {
      const std::byte* in = from + begin;
      for (int64_t y = 0; y < height_; ++y, in += line, to += width) {
        std::memcpy(to, in, static_cast<size_t>(width));
      }
    }
    return absl::OkStatus();
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

OptionValues Crop::option_values() const {
  // The map is the step that Create made, so the options are read from it.
  const RowStep& step = rows().map->steps()[0];
  return OptionValues()
      .Int("w", step.width)
      .Int("h", step.height)
      .Int("top", step.top)
      .Int("left", step.left)
      .Texts("in_keys", rows().in_keys)
      .Texts("out_keys", rows().out_keys);
}

absl::StatusOr<std::unique_ptr<Crop>> Crop::Create(const Options& options) {
  constexpr absl::string_view kCreate = "Crop::Create";
  RILL_RETURN_IF_ERROR(CheckSize(kCreate, options.w, options.h));
  if (options.top < 0 || options.left < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": top and left: got ", options.top, " and ",
                     options.left, ", want both >= 0"));
  }
  Rows rows = {
      .map = nullptr, .in_keys = options.in_keys, .out_keys = options.out_keys};
  RILL_RETURN_IF_ERROR(CheckRows(kCreate, rows));
  RILL_ASSIGN_OR_RETURN(rows.map,
                        MakeRowStep({.kind = RowStep::Kind::kCrop,
                                     .top = options.top,
                                     .left = options.left,
                                     .height = options.h.value_or(options.w),
                                     .width = options.w}));
  return absl::WrapUnique(new Crop(std::move(rows)));
}

CenterCrop::CenterCrop(const Options& options)
    : RowwiseTransform({.map = std::make_shared<CenterCropMap>(
                            options.h.value_or(options.w), options.w),
                        .in_keys = options.in_keys,
                        .out_keys = options.out_keys}),
      options_(options) {}

OptionValues CenterCrop::option_values() const {
  return OptionValues()
      .Int("w", options_.w)
      .Int("h", options_.h.value_or(options_.w))
      .Texts("in_keys", options_.in_keys)
      .Texts("out_keys", options_.out_keys);
}

absl::StatusOr<std::unique_ptr<CenterCrop>> CenterCrop::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "CenterCrop::Create";
  RILL_RETURN_IF_ERROR(CheckSize(kCreate, options.w, options.h));
  RILL_RETURN_IF_ERROR(CheckRows(kCreate, {.map = nullptr,
                                           .in_keys = options.in_keys,
                                           .out_keys = options.out_keys}));
  return absl::WrapUnique(new CenterCrop(options));
}

}  // namespace rill
