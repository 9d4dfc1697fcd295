// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TORCHRL_TED_LAYOUT_H_
#define RILL_FORMATS_TORCHRL_TED_LAYOUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// Steps and what came next, with what is equal stored once: the layout of
// TorchRL's flat and nested checkpointers. Lane after lane, in each the steps
// from the oldest on. Leaves that "next" has too are there once, with one row more
// after each end of a trajectory.
// Thread-safety: thread-compatible.
struct FlatTed {
  using Leaf = std::pair<std::string, Tensor>;  // Key, [places] or more.

  Shape storage_shape;              // [capacity, lanes ...]
  int64_t steps = 0;                // That were written, of a lane.
  int64_t shift = 0;                // The place behind the newest step.
  std::vector<Leaf> plain = {};     // [capacity * lanes, ...]
  std::vector<Leaf> expanded = {};  // One row more a trajectory.
  // Steps of each trajectory, those that were not written being one of their
  // own; and rows of `expanded`. int64 [trajectories].
  Tensor lengths = {};
  Tensor expanded_lengths = {};

  bool is_full() const { return steps == storage_shape[0]; }
};

// Rows [steps, lanes ...] of the places. It takes all of `flat` but the
// lengths; leaves of either kind may be in `plain`. `where` starts the
// messages: DATA_LOSS where sizes do not fit one another.
absl::StatusOr<TensorDict> UnflattenTed(absl::string_view where,
                                        const FlatTed& flat,
                                        const TorchRlFlatKeys& keys);

// The other way. INVALID_ARGUMENT where rows have no `next/done`, or would not
// come back as they were. Examples: a `next` that is not the step behind it, an
// end at the root, a leaf without its other half.
absl::StatusOr<FlatTed> FlattenTed(absl::string_view where,
                                   const TensorDict& rows, int64_t capacity,
                                   int64_t cursor, const TorchRlFlatKeys& keys);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_TORCHRL_TED_LAYOUT_H_
