// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_ACTION_CHUNK_H_
#define RILL_TRANSFORMS_ACTIONS_ACTION_CHUNK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// After a read, for policies that predict several actions at once: the chunk of
// a row is its action and those of the chunk_size - 1 steps behind it. Past the
// end of a trajectory the last action repeats, and pad_key is true there.
// TorchRL's ActionChunkTransform; done_key is the whole key, and actions may
// have any shape.
//
// A trajectory ends with the batch's last dimension, behind each row that is
// done, by done_key or its parts, and with each piece
// (transforms/timeline/timeline.h). Rows that do not follow one another are
// refused, and batches without any of these flags: NOT_FOUND.
//
// Shapes: a batch [..., T], the last dimension is time; chunk_key of the
//   action's dtype, [..., T, chunk_size] + the action's; pad_key bool [..., T,
//   chunk_size]; done_key bool [.., T, 1].
// Thread-safety: immutable.
// Cost: chunk_size copies of the actions, into one of two tensors that are used
//   again once nobody else holds them.
//
// Example (ActionChunkTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto chunk, ActionChunk::Create({.chunk_size = 8}));
class ActionChunk {
 public:
  struct Options {
    int64_t chunk_size = 0;  // > 0.
    std::string action_key = "action";
    std::string chunk_key = "vla_action/chunk";
    std::string pad_key = "action_is_pad";
    // Empty: each line of a batch is of one trajectory.
    std::string done_key = "next/done";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_ACTION_CHUNK_H_
