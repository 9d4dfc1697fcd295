// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/element_copies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::transforms_internal {
namespace {

// Elements have DType's numbers.
static_assert(static_cast<int>(ElementType::kBool) ==
                  static_cast<int>(DType::kBool) &&
              static_cast<int>(ElementType::kFloat64) ==
                  static_cast<int>(DType::kFloat64));
static_assert(ElementCopy::kMostDims >= Shape::kMaxRank);

// The dimensions of both sides, those together that lie so on both. That of
// rows that are gathered stays alone.
void AddDims(const Tensor& from, const ElementCopies::Gathered& gathered,
             const Tensor& to, ElementCopy* copy) {
  const int64_t bytes = DTypeSize(from.dtype());
  const int64_t to_bytes = DTypeSize(to.dtype());
  const int alone = gathered.rows == nullptr ? 0 : 1;
  int rank = 0;
  for (int d = 0; d < from.rank(); ++d) {
    const int64_t size = from.shape()[d];
    if (size == 1 && d >= alone) continue;
    const int64_t from_stride =
        (d < alone ? gathered.stride : from.strides_bytes()[d]) / bytes;
    const int64_t to_stride = to.strides_bytes()[d] / to_bytes;
    if (rank > alone && copy->from_strides[rank - 1] == size * from_stride &&
        copy->to_strides[rank - 1] == size * to_stride) {
      copy->sizes[rank - 1] *= size;
    } else {
      copy->sizes[rank++] = size;
    }
    copy->from_strides[rank - 1] = from_stride;
    copy->to_strides[rank - 1] = to_stride;
  }
  // A single element has strides of 0.
  copy->rank = static_cast<uint8_t>(std::max(rank, 1));
}

}  // namespace

absl::Status ElementCopies::Add(const Tensor& from, const Gathered& gathered,
                                const Tensor& to,
                                absl::Span<const ElementStep> steps) {
  if (from.num_elements() == 0) return absl::OkStatus();
  const auto more = static_cast<int>(steps.size());
  if (kernel_.num_copies == ElementCopyKernel::kMostCopies ||
      kernel_.num_steps + more > ElementCopyKernel::kMostSteps) {
    RILL_RETURN_IF_ERROR(Launch());
  }
  ElementCopy copy;
  AddDims(from, gathered, to, &copy);
  const ByteExtent read = ByteExtent::Of(from, 0);
  const ByteExtent written = ByteExtent::Of(to, 0);
  copy.from = read.begin;
  copy.to = const_cast<std::byte*>(written.begin);
  copy.from_bytes = read.end - read.begin;
  if (gathered.rows != nullptr) {
    copy.rows = gathered.rows;
    copy.from_bytes += (gathered.table_rows - 1) * gathered.stride;
  }
  copy.to_bytes = written.end - written.begin;
  copy.from_first = (from.raw_data() - read.begin) / DTypeSize(from.dtype());
  copy.to_first = (to.raw_data() - written.begin) / DTypeSize(to.dtype());
  copy.end = kernel_.elements + from.num_elements();
  copy.element_bytes = static_cast<uint8_t>(DTypeSize(from.dtype()));
  // Leaves of one transform have the same steps.
  const int last = kernel_.num_steps - more;
  if (last >= 0 &&
      std::equal(steps.begin(), steps.end(), kernel_.steps + last)) {
    copy.first_step = static_cast<uint8_t>(last);
  } else {
    copy.first_step = static_cast<uint8_t>(kernel_.num_steps);
    std::copy(steps.begin(), steps.end(), kernel_.steps + kernel_.num_steps);
    kernel_.num_steps += more;
  }
  copy.num_steps = static_cast<uint8_t>(more);
  kernel_.copies[kernel_.num_copies++] = copy;
  kernel_.elements = copy.end;
  return absl::OkStatus();
}

absl::Status ElementCopies::Launch() {
  if (kernel_.num_copies == 0) return absl::OkStatus();
  const ElementCopyKernel kernel = kernel_;
  kernel_ = ElementCopyKernel();
  return LaunchKernel(kernel, GridFor(kernel.elements), *stream_);
}

}  // namespace rill::transforms_internal
