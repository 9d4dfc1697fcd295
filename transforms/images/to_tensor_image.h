// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_TO_TENSOR_IMAGE_H_
#define RILL_TRANSFORMS_IMAGES_TO_TENSOR_IMAGE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Images as cameras and games give them become images as networks take them:
// bytes [..., H, W, C] become floats [..., C, H, W] in [0, 1]. TorchRL's
// ToTensorImage. After reads: store bytes, a quarter of the floats.
//
// Shapes: leaves of at least three dimensions behind the batch's, of any dtype
//   with arithmetic. Images without elements are refused.
// Thread-safety: immutable.
// Numerics: x / 255 in float32 (float64 where the leaf is), rounded to `dtype`.
// Cost: one pass over the image, by vectors for three channels of bytes. The
//   transposition moves the elements as they are stored.
//
// Example (ToTensorImageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto to_image, ToTensorImage::Create({}));
struct ToTensorImage {
  struct Options {
    // Divide by 255. None: where the leaf is not floating point.
    std::optional<bool> from_int = std::nullopt;
    bool unsqueeze = false;         // [H, W, C] becomes [1, C, H, W].
    DType dtype = DType::kFloat32;  // Of the result; floating point.
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    // Images whose last dimension is not 3 keep their order.
    bool shape_tolerant = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_TO_TENSOR_IMAGE_H_
