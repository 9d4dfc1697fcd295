// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_RANDOM_CROP_H_
#define RILL_TRANSFORMS_EPISODES_RANDOM_CROP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// A part of random place from each sequence of a batch, after reads: lines of
// `sub_seq_len` steps along one batch dimension. TorchRL's
// RandomCropTensorDict.
//
// Shapes: a batch [.., T, ..] becomes [.., sub_seq_len, ..]; each line along T
//   has a start of its own, uniform over all that fit. A batch without rows
//   stays as it is.
// State: "batches" int64 [], the number of batches so far: a crop is a function
//   of seed, batch number and line.
// Errors: INVALID_ARGUMENT where a line, or its part under the mask, is shorter
//   than sub_seq_len, or there is no such dimension. So too of a spec whose mask
//   is not one bool a row. FAILED_PRECONDITION where leaves lie on two devices.
//   Values a row that are no tensors go along; ragged tensors are refused.
// Device/Stream: each leaf is cropped where it lies, on a device on its current
//   stream. The host goes on, but where there is a mask on a device: it copies
//   that one and waits. Starts are the same on every device.
// Differs from TorchRL: the last start is drawn too, and a line of just
//   sub_seq_len steps is taken whole.
// Thread-safety: immutable.
// Cost: one copy of what is kept, and of leaves with gaps. On a device one
//   gather takes all leaves.
//
// Example (SequencePartsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto crop,
//                         RandomCropTensorDict::Create({.sub_seq_len = 8}));
struct RandomCropTensorDict {
  struct Options {
    int64_t sub_seq_len = 1;  // > 0
    int64_t sample_dim = -1;  // Negative: from the last batch dimension.
    // bool, true in the first steps of each line, which are those to crop from.
    // Empty, or not in the batch: all are.
    std::string mask_key = "";
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_RANDOM_CROP_H_
