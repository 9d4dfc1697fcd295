// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/row_list.h"

#include "absl/container/flat_hash_map.h"
#include "rill/device/cuda/cuda_status.h"

namespace rill::cuda_internal {

LastPlaces KeepLastPlaces(absl::Span<const int64_t> rows) {
  absl::flat_hash_map<int64_t, int64_t> last;
  last.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    last[rows[i]] = static_cast<int64_t>(i);
  }
  // As many rows as entries: none repeats, and no places need to be sent.
  if (last.size() == rows.size()) return {{rows.begin(), rows.end()}, {}};
  LastPlaces kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i);
    if (last[rows[i]] != place) continue;
    kept.rows.push_back(rows[i]);
    kept.places.push_back(place);
  }
  return kept;
}

DeviceNumbers::~DeviceNumbers() {
  if (data_ != nullptr) cudaFreeAsync(data_, stream_);
}

absl::Status DeviceNumbers::Upload(absl::Span<const int64_t> numbers) {
  if (numbers.empty()) return absl::OkStatus();
  const size_t bytes = numbers.size() * sizeof(int64_t);
  void* data = nullptr;
  RILL_CUDA_RETURN_IF_ERROR("row list", cudaMallocAsync(&data, bytes, stream_));
  data_ = static_cast<int64_t*>(data);
  RILL_CUDA_RETURN_IF_ERROR("row list",
                            cudaMemcpyAsync(data, numbers.data(), bytes,
                                            cudaMemcpyHostToDevice, stream_));
  return absl::OkStatus();
}

}  // namespace rill::cuda_internal
