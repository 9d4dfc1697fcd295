// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/steps/lane_work.h"

#include <cstdint>
#include <cstring>

#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/steps/lane_kernels.h"

namespace rill::transforms_internal {
namespace {

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % sizeof(LaneWord) == 0;
}

absl::Status Launch(const LaneCopyKernel& kernel, const Stream& stream) {
  if (kernel.units() == 0) return absl::OkStatus();
  return LaunchKernel(kernel, GridFor(kernel.units()), stream);
}

}  // namespace

absl::Status CopyLanes(absl::Span<const LaneCopy> copies, int64_t lanes,
                       const uint8_t* mask, const Stream& stream) {
  LaneCopyKernel kernel = {.mask = mask, .lanes = lanes};
  for (const LaneCopy& copy : copies) {
    if (copy.width == 0) continue;
    if (kernel.num_copies == LaneCopyKernel::kMostCopies) {
      RILL_RETURN_IF_ERROR(Launch(kernel, stream));
      kernel = {.mask = mask, .lanes = lanes};
    }
    constexpr auto kWord = int64_t{sizeof(LaneWord)};
    const bool is_words =
        copy.width % kWord == 0 && IsAligned(copy.from) && IsAligned(copy.to);
    const int64_t unit = is_words ? kWord : 1;
    const int64_t end = kernel.units() + lanes * copy.width / unit;
    kernel.copies[kernel.num_copies++] = {
        .from = reinterpret_cast<const LaneByte*>(copy.from),
        .to = reinterpret_cast<LaneByte*>(copy.to),
        .width = copy.width,
        .unit = unit,
        .end = end,
        .repeats = copy.repeats};
  }
  return Launch(kernel, stream);
}

absl::Status FillLanesWith(const void* value, const uint8_t* mask,
                           const Tensor& leaf, const Stream& stream) {
  if (leaf.num_elements() == 0) return absl::OkStatus();
  const int64_t lanes = leaf.shape()[0];
  LaneFillKernel kernel = {.to = leaf.data<LaneByte>(),
                           .mask = mask,
                           .lanes = lanes,
                           .width = leaf.size_bytes() / lanes,
                           .element_bytes = DTypeSize(leaf.dtype())};
  std::memcpy(kernel.value, value, static_cast<size_t>(kernel.element_bytes));
  return LaunchKernel(kernel, GridFor(leaf.size_bytes()), stream);
}

}  // namespace rill::transforms_internal
