// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_GRAY_SCALE_H_
#define RILL_TRANSFORMS_IMAGES_GRAY_SCALE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Images of red, green and blue become gray: 0.2989 R + 0.587 G + 0.114 B.
// TorchRL's GrayScale.
//
// Shapes: leaves [..., 3, H, W] of uint8, float32 or float64, which become
//   [..., 1, H, W], H and W > 0: behind ToTensorImage, or images that are
//   stored so.
// Thread-safety: immutable.
// Numerics: torch's, bit for bit: in float32 (float64 where the leaf is), each
//   product and sum rounded; uint8 is cut, so that white becomes 254.
//
// Example (GrayScaleTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto gray, GrayScale::Create({}));
struct GrayScale {
  struct Options {
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_GRAY_SCALE_H_
