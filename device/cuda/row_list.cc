// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/row_list.h"

#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "rill/base/status_macros.h"
#include "rill/device/cuda/cuda_status.h"
#include "rill/device/cuda/device_pool.h"

namespace rill::cuda_internal {

LastPlaces KeepLastPlaces(absl::Span<const int64_t> rows) {
  if (std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) ==
      rows.end()) {  // The rows of an append ascend.
    return {{rows.begin(), rows.end()}, {}};
  }
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
  if (is_on_device_) {
    cudaFreeAsync(const_cast<int64_t*>(list_.numbers), stream_);
  }
}

absl::Status DeviceNumbers::Upload(int index,
                                   absl::Span<const int64_t> numbers) {
  list_ = {numbers.data(), static_cast<int64_t>(numbers.size())};
  if (list_.count <= kFewNumbers) return absl::OkStatus();
  const int64_t bytes = list_.count * static_cast<int64_t>(sizeof(int64_t));
  void* data = nullptr;
  RILL_ASSIGN_OR_RETURN(DevicePool* const pool, DevicePool::Of(index));
  RILL_CUDA_RETURN_IF_ERROR("row list",
                            pool->AllocateAsync(bytes, stream_, &data));
  list_.numbers = static_cast<const int64_t*>(data);
  is_on_device_ = true;
  RILL_CUDA_RETURN_IF_ERROR("row list",
                            cudaMemcpyAsync(data, numbers.data(), bytes,
                                            cudaMemcpyHostToDevice, stream_));
  return absl::OkStatus();
}

}  // namespace rill::cuda_internal
