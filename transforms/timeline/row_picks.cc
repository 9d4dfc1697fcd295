// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/timeline/row_picks.h"

#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill::transforms_internal {
namespace {

template <typename T>
absl::Status Launch(const Tensor& from, const Tensor& picks, int64_t rows,
                    int64_t n, absl::Span<const std::byte> value,
                    const Tensor& to, const Stream& stream) {
  PickKernel<T> kernel = {
      .from = from.data<T>(),
      .to = to.data<T>(),
      .picks = picks.data<int64_t>(),
      .rows = rows,
      .n = n,
      .width = from.size_bytes() / rows / static_cast<int64_t>(sizeof(T))};
  auto* const pad = reinterpret_cast<std::byte*>(&kernel.value);
  for (size_t i = 0; i < sizeof(kernel.value) && !value.empty(); ++i) {
    pad[i] = value[i % value.size()];
  }
  return LaunchKernel(kernel, GridFor(kernel.words()), stream);
}

}  // namespace

absl::Status EnqueueChunkPicks(const ChunkPickKernel& kernel,
                               const Stream& stream) {
  return LaunchKernel(kernel, GridFor(kernel.lines.lines), stream);
}

absl::Status EnqueueNextPicks(const NextPickKernel& kernel,
                              const Stream& stream) {
  return LaunchKernel(kernel, GridFor(kernel.rows), stream);
}

absl::Status CopyPicks(const Tensor& from, const Tensor& picks, int64_t rows,
                       int64_t n, absl::Span<const std::byte> value,
                       const Tensor& to, const Stream& stream) {
  if (to.size_bytes() == 0) return absl::OkStatus();
  const auto fits = [&](int64_t bytes) {
    const auto is_multiple = [bytes](const Tensor& tensor) {
      return reinterpret_cast<uintptr_t>(tensor.raw_data()) %
                 static_cast<uintptr_t>(bytes) ==
             0;
    };
    return from.size_bytes() / rows % bytes == 0 && is_multiple(from) &&
           is_multiple(to);
  };
  const auto launch = fits(16)  ? Launch<SixteenPickBytes>
                      : fits(4) ? Launch<uint32_t>
                                : Launch<uint8_t>;
  return launch(from, picks, rows, n, value, to, stream);
}

}  // namespace rill::transforms_internal
