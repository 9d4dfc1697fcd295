// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_
#define RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/specs/spec.h"
#include "rill/specs/spec_tree.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::storage_internal {

// Batches on a device that are put together of rows from two places.
// Thread-safety: thread-safe.
class BatchAssembly {
 public:
  // Rows on their way, reused.
  struct Staging {
    TensorDict rows;
    int64_t capacity = 0;
  };

  static absl::StatusOr<std::unique_ptr<BatchAssembly>> Create(
      const TensorDictSpec& spec, Device device);

  const TensorDictSpec& spec() const { return spec_; }
  int64_t row_bytes() const { return row_bytes_; }
  // For places in such batches.
  ReadPlaces::Source source() const { return {spec_, tree_, device_}; }

  // Host memory for n rows that the device can copy from, to read into; empty
  // where that would be too much to keep, or cannot be had. `staging` keeps it.
  TensorDict HostRows(int64_t n, const LeafKeys& keys, Staging* staging) const;

  // Row i of `rows` -> row places[i] of `batch`, for its leaves.
  absl::Status Put(const TensorDict& rows, absl::Span<const int64_t> places,
                   absl::Span<const LeafBatch> batch) const;

 private:
  BatchAssembly(const TensorDictSpec& spec, Device device, Stream stream);

  const TensorDictSpec spec_;
  const SpecTree tree_;
  const Device device_;
  const int64_t row_bytes_;

  mutable absl::Mutex stream_mutex_;
  const Stream stream_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_
