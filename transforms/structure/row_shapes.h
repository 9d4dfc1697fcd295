// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_ROW_SHAPES_H_
#define RILL_TRANSFORMS_STRUCTURE_ROW_SHAPES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Transforms that change the shape of rows and no value. Dimensions count from
// the back, and are those of a row: so they hold for every batch shape. With
// in_keys_inv each is undone before a write, and an action comes back into the
// environment's shape.
//
// Shapes: those of the row after the batch's dimensions, at most 8 together.
// Errors: Create names the option; specs and calls are INVALID_ARGUMENT where
//   a row has no such dimension.
// Thread-safety: immutable.
// Cost: FlattenObservation, Squeeze and Unsqueeze make views of contiguous
//   leaves; Permute copies them. Beside an environment each is a copy.

// The dimensions first_dim to last_dim of a row become one. TorchRL's
// FlattenObservation.
//
// Example (FlattenObservationTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto flatten,
//       FlattenObservation::Create({.first_dim = -3, .last_dim = -1}));
struct FlattenObservation {
  struct Options {
    int first_dim = 0;  // Both < 0, first_dim <= last_dim.
    int last_dim = 0;
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// A new dimension of size 1, which is dimension `dim` of the new row. TorchRL's
// UnsqueezeTransform.
//
// Example (UnsqueezeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto unsqueeze,
//                         Unsqueeze::Create({.dim = -1,
//                                            .in_keys = {"observation"}}));
struct Unsqueeze {
  struct Options {
    int dim = 0;  // < 0.
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
  };

  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// Drops the dimension `dim` of a row, whose size is 1. TorchRL's
// SqueezeTransform, which leaves a dimension of another size as it is.
//
// Example (SqueezeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto squeeze,
//                         Squeeze::Create({.dim = -1,
//                                          .in_keys = {"observation"}}));
struct Squeeze {
  using Options = Unsqueeze::Options;

  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// The last dims.size() dimensions of a row in another order: dimension i of
// them becomes what dims[i] was. TorchRL's PermuteTransform.
//
// Example (PermuteTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto channels_first,
//                         Permute::Create({.dims = {-1, -3, -2},
//                                          .in_keys = {"pixels"}}));
struct Permute {
  struct Options {
    std::vector<int> dims = {};  // Each of -dims.size() to -1 once.
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
  };

  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_ROW_SHAPES_H_
