// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_FLATTEN_TENSOR_DICT_H_
#define RILL_TRANSFORMS_STRUCTURE_FLATTEN_TENSOR_DICT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// The batch's dimensions become one before a write: [lanes, time] steps are
// lanes * time rows. TorchRL's FlattenTensorDict.
//
// Shapes: any batch shape; [] becomes [1]. Rows keep their order and shapes.
//   Where dimensions have names the one is named "rows": lines lie side by
//   side, so nothing that works along time takes it.
// Errors: INVALID_ARGUMENT where an entry cannot follow (a ragged tensor).
// Thread-safety: immutable.
// Cost: views; a copy of leaves whose layout allows none.
//
// Example (FlattenTensorDictTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto flatten, FlattenTensorDict::Create({}));
class FlattenTensorDict {
 public:
  struct Options {
    bool inverse = true;  // false: after reads instead.
  };

  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_FLATTEN_TENSOR_DICT_H_
