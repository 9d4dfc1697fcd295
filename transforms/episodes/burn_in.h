// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_BURN_IN_H_
#define RILL_TRANSFORMS_EPISODES_BURN_IN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Marks the first steps of sequences, after reads: those that warm up a
// recurrent network and are not learned from: TorchRL's BurnInTransform, as far
// as data go. TorchRL's runs the network too, puts its state into the first
// step that is left, and drops those before it. Here the user does, with
// SplitBurnIn.
//
// A sampler of sequences with burn_in (units/sequence_marks.h) marks them by
// itself; this one is for batches that come whole.
//
// Shapes: batches [*B, T], time in the last dimension; `mask_key` bool
//   [*B, T, 1], false for the first `burn_in` steps of each line. Where there is
//   such a leaf it stays false where it was.
// Thread-safety: immutable, without a state.
//
// Example (SequencePartsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto burn_in, BurnIn::Create({.burn_in = 4}));
struct BurnIn {
  struct Options {
    int64_t burn_in = 0;  // >= 0
    std::string mask_key = "learning_mask";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

struct BurnInParts {
  TensorDict burn_in;  // [*B, burn_in]
  TensorDict rest;     // [*B, T - burn_in]
};

// Both parts of a batch [*B, T], which share its bytes. INVALID_ARGUMENT unless
// 0 <= burn_in <= T.
absl::StatusOr<BurnInParts> SplitBurnIn(const TensorDict& batch,
                                        int64_t burn_in);

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_BURN_IN_H_
