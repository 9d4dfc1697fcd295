// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TIMELINE_ROW_PICKS_H_
#define RILL_TRANSFORMS_TIMELINE_ROW_PICKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/timeline/pick_kernels.h"

namespace rill::transforms_internal {

// The kernels of pick_kernels.h, enqueued. The caller keeps the tensors.
// Thread-safety: thread-safe.
absl::Status EnqueueChunkPicks(const ChunkPickKernel& kernel,
                               const Stream& stream);
absl::Status EnqueueNextPicks(const NextPickKernel& kernel,
                              const Stream& stream);

// `to`, [rows, n] rows of `from`, which has `rows` of them. `picks` is int64
// [rows, n]; `value` is one element, which pads.
absl::Status CopyPicks(const Tensor& from, const Tensor& picks, int64_t rows,
                       int64_t n, absl::Span<const std::byte> value,
                       const Tensor& to, const Stream& stream);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_TIMELINE_ROW_PICKS_H_
