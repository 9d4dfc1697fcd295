// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_
#define RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/storage/batch_leaves.h"
#include "rill/tensordict/spec.h"
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

  // Whether a batch [n] of these leaves can be put together in `out`: one
  // contiguous writable array a leaf on the device, of no buffer in `lent`.
  bool Fits(int64_t n, const LeafKeys& keys,
            absl::Span<const Buffer* const> lent, const TensorDict& out) const;
  // A new one.
  absl::StatusOr<TensorDict> MakeBatch(int64_t n, const LeafKeys& keys) const;

  // Host memory for n rows that the device can copy from, to read into; empty
  // where that would be too much to keep, or cannot be had. `staging` keeps it.
  TensorDict HostRows(int64_t n, const LeafKeys& keys, Staging* staging) const;

  // Row i of `rows` -> row places[i] of `batch`, for the leaves of `keys`.
  absl::Status Put(const TensorDict& rows, absl::Span<const int64_t> places,
                   const LeafKeys& keys, TensorDict* batch) const;

 private:
  BatchAssembly(const TensorDictSpec& spec, Device device, Stream stream);

  // False where a leaf is missing or there are others.
  bool FindLeaves(const TensorDict& dict, const LeafKeys& keys,
                  std::vector<const Tensor*>* tensors) const;

  const TensorDictSpec spec_;
  const SpecTree tree_;
  const Device device_;
  int64_t row_bytes_ = 0;

  mutable absl::Mutex stream_mutex_;
  const Stream stream_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_TIERED_BATCH_ASSEMBLY_H_
