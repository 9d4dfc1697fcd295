// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_CROP_H_
#define RILL_TRANSFORMS_IMAGES_CROP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Images become the part of w columns and h rows whose first pixel is (top,
// left). TorchRL's Crop. Unlike it, w is the width (there the rows), and a part
// that is not inside the image is an error (there filled with 0).
//
// Shapes: leaves [..., H, W] of any dtype, which become [..., h, w]. Images of
//   channels last are refused, as by Resize.
// Thread-safety: immutable.
// Cost: one copy of the part.
//
// Example (CropTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto crop, Crop::Create({.w = 160, .h = 160,
//                                                  .top = 34}));
struct Crop {
  struct Options {
    int64_t w = 0;                            // > 0
    std::optional<int64_t> h = std::nullopt;  // > 0; none: w.
    int64_t top = 0;
    int64_t left = 0;
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// The same of the part in the middle. Where it cannot be exactly there, it
// begins at the even one of the two places next to it. TorchRL's CenterCrop,
// with the differences of Crop.
//
// Example (CropTest.CenterExample runs it):
//   RILL_ASSIGN_OR_RETURN(auto crop, CenterCrop::Create({.w = 84}));
struct CenterCrop {
  struct Options {
    int64_t w = 0;                            // > 0
    std::optional<int64_t> h = std::nullopt;  // > 0; none: w.
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_CROP_H_
