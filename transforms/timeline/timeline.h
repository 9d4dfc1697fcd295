// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TIMELINE_TIMELINE_H_
#define RILL_TRANSFORMS_TIMELINE_TIMELINE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"

namespace rill::transforms_internal {

// What works along time asks here where a line of a batch [*B, T] stops, and
// whether its last dimension is time by its names (tensordict/dim_names.h).
// `caller` ("GAE") starts the messages. Thread-safety: reads only.

// INVALID_ARGUMENT where the names of the dimensions say that the last one is
// not time: it is "rows", or another is "time". A batch without names passes,
// as few of TorchRL's have any.
absl::Status CheckTimeIsLast(absl::string_view caller, const TensorDict& batch);

// bool [*B, T, 1]: a trajectory ends with the row. Where the batch has no
// `done_key`, "<group>done", its parts count: "<group>terminated" or
// "<group>truncated". NOT_FOUND where there are none of the three. A group of
// agents ends with its lane, too: of "next/agents/done" the flags of
// "next/done" count beside it.
absl::StatusOr<Tensor> ReadEnds(absl::string_view caller,
                                absl::string_view done_key,
                                const TensorDict& batch,
                                DeviceWork::Call* call = nullptr);

// The same question to a spec of any device; INVALID_ARGUMENT where a flag is
// not bool [1].
absl::Status CheckHasEnds(absl::string_view caller, absl::string_view done_key,
                          const TensorDictSpec& spec);

// ReadEnds, and the ends of pieces: a line stops too where its neighbours
// differ in one of PieceKeys. The marks of slices are flags already. A line's
// last row may be false. Where the last dimension is "rows", each of them
// stops; where another is "time", INVALID_ARGUMENT. With `call` the leaves lie
// on its device, and so does the result: one launch, without a wait. So of
// ReadEnds. Cost: O(rows); allocates where a piece ends without a flag.
absl::StatusOr<Tensor> ReadStops(absl::string_view caller,
                                 absl::string_view done_key,
                                 const TensorDict& batch,
                                 DeviceWork::Call* call = nullptr);

// "sequence_id", "collector/traj_ids", "validity_mask", "collector/mask",
// "buffer_ids": the keys of leaves that differ between a piece and the next.
absl::Span<const absl::string_view> PieceKeys();

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_TIMELINE_TIMELINE_H_
