// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_RESIZE_H_
#define RILL_TRANSFORMS_IMAGES_RESIZE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Images become images of w columns and h rows. TorchRL's Resize, but that w is
// the width (there the rows).
//
// Shapes: leaves [..., H, W], which become [..., h, w]. kBilinear: uint8 or
//   float32; kNearest: any dtype. Images of channels last are refused: more than
//   4 channels that are 1, 3 or 4 wide.
// Thread-safety: immutable.
// Numerics: torch's interpolate, which torchvision calls, to 1e-6 of the
//   largest pixel: in float32, uint8 rounded half to even. The same bits on
//   every machine. Floats in [0, 1] or [-1, 1] stay there; other bounds of
//   floats are lost to rounding.
// Cost: one pass over the image and one over h of its rows, by vectors. The
//   weights are computed once for each pair of sizes, and once more for each
//   thread that works at the same time; the 16 that were used last are kept.
//
// Example (ResizeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto resize, Resize::Create({.w = 84}));
struct Resize {
  enum class Interpolation : uint8_t { kBilinear, kNearest };

  struct Options {
    int64_t w = 0;                            // 1 .. 65536
    std::optional<int64_t> h = std::nullopt;  // The same; none: w.
    Interpolation interpolation = Interpolation::kBilinear;
    // A pixel of a smaller image is made of all that it covers, as TorchRL's
    // always is; false: of the four next to its centre. kNearest has none.
    bool antialias = true;
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_RESIZE_H_
