// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ELEMENT_COPIES_H_
#define RILL_TRANSFORMS_ROWS_ELEMENT_COPIES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/element_kernels.h"

namespace rill::transforms_internal {

// Copies on one device, done in one launch where they are few
// (element_kernels.h). Thread-safety: thread-compatible.
class ElementCopies {
 public:
  // Copies are enqueued on `stream`, which outlives this.
  explicit ElementCopies(const Stream* stream) : stream_(stream) {}

  // Adds a copy between two tensors of one shape on the stream's device, of any
  // strides. The dtypes are those of the first and behind the last of `steps`,
  // at most ElementCopyKernel::kMostSteps of them; without any they are equal.
  // `to` is `from`, or shares no byte with tensors of other copies since the
  // last Launch. Launches those before where there is no room.
  absl::Status Add(const Tensor& from, const Tensor& to,
                   absl::Span<const ElementStep> steps = {}) {
    return Add(from, {}, to, steps);
  }
  // The same of rows of a table: `from` is row 0 for all of its first
  // dimension (Tensor::Expand), and the i-th is `stride` bytes times rows[i]
  // behind it.
  struct Gathered {
    const int64_t* rows = nullptr;  // On the device; null: none are gathered.
    int64_t stride = 0;
    int64_t table_rows = 0;
  };
  absl::Status Add(const Tensor& from, const Gathered& gathered,
                   const Tensor& to, absl::Span<const ElementStep> steps);
  // Enqueues what was added. The caller keeps the tensors until the stream got
  // there.
  absl::Status Launch();

 private:
  const Stream* const stream_;
  ElementCopyKernel kernel_;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_ELEMENT_COPIES_H_
