// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_WEIGHTS_WEIGHT_LAYOUT_H_
#define RILL_FLOW_WEIGHTS_WEIGHT_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"
#include "rill/tensors/shape.h"

namespace rill::weights_internal {

// Keys, dtypes and shapes of every snapshot of a store. They travel in the
// memory that processes share, so that a reader needs a descriptor only.
// Thread-safety: thread-compatible.
struct WeightLayout {
  Shape batch_shape = {};
  TensorDictSpec spec = {};  // Tensors only, one at least.

  // For processes of one machine: numbers are in its own byte order.
  std::string ToBytes() const;
  // DATA_LOSS where ToBytes cannot have made them.
  static absl::StatusOr<WeightLayout> FromBytes(absl::string_view bytes);

  // A snapshot's bytes; at most kMaxBytes for a layout that was read.
  int64_t PackedBytes() const;
  static constexpr int64_t kMaxBytes = int64_t{1} << 40;
};

}  // namespace rill::weights_internal

#endif  // RILL_FLOW_WEIGHTS_WEIGHT_LAYOUT_H_
