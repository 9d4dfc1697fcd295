// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/batch_assembly.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/row_copy.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kMaxStagingBytes = int64_t{64} << 20;

}  // namespace

BatchAssembly::BatchAssembly(const TensorDictSpec& spec, Device device,
                             Stream stream)
    : spec_(spec),
      tree_(spec),
      device_(device),
      row_bytes_(RowBytes(spec)),
      stream_(std::move(stream)) {}

absl::StatusOr<std::unique_ptr<BatchAssembly>> BatchAssembly::Create(
    const TensorDictSpec& spec, Device device) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<BatchAssembly>(
      new BatchAssembly(spec, device, std::move(stream)));
}

TensorDict BatchAssembly::HostRows(int64_t n, const LeafKeys& keys,
                                   Staging* staging) const {
  if (n > kMaxStagingBytes / std::max<int64_t>(row_bytes_, 1)) return {};
  if (staging->capacity < n) {
    const Tensor::Options memory = {device_, device_.is_cpu()
                                                 ? MemoryKind::kPageable
                                                 : MemoryKind::kPinned};
    // Doubles, so that growing batches do not allocate each time.
    const int64_t capacity = std::max(n, 2 * staging->capacity);
    auto rows = spec_.Empty({capacity}, memory);
    if (!rows.ok()) return {};
    *staging = {*std::move(rows), capacity};
  }
  absl::StatusOr<TensorDict> rows = staging->rows;
  if (keys) {
    rows = rows->Select(
        std::vector<absl::string_view>(keys->begin(), keys->end()));
  }
  if (rows.ok()) rows = rows->Slice(0, 0, n);
  return rows.ok() ? *std::move(rows) : TensorDict();
}

absl::Status BatchAssembly::Put(const TensorDict& rows,
                                absl::Span<const int64_t> places,
                                absl::Span<const LeafBatch> batch) const {
  // A scatter whose table is the caller's batch: its row places[i] gets row i.
  thread_local std::vector<RowColumn> columns;
  TensorDict moved;
  const TensorDict* source = &rows;
  // A device's kernel reads pinned memory itself; other memory is moved first.
  if (!device_.is_cpu() && !rows.is_pinned()) {
    RILL_ASSIGN_OR_RETURN(moved, rows.To(device_));
    source = &moved;
  }
  columns.clear();
  for (const LeafBatch& to : batch) {
    const TensorDictSpec::Leaf& leaf = spec_.leaves()[to.leaf];
    const int64_t width =
        leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    if (width == 0) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor from, source->Get(leaf.key));
    columns.push_back({.table = to.data,
                       .table_stride = to.stride,
                       .batch = from.raw_data(),
                       .batch_stride = width,
                       .width = width});
  }
  if (columns.empty() || places.empty()) return absl::OkStatus();
  if (device_.is_cpu()) {
    ScatterRowsOnHost(columns, places);
    return absl::OkStatus();
  }
  absl::MutexLock lock(&stream_mutex_);
  RILL_RETURN_IF_ERROR(stream_.backend()->ScatterRows(
      device_.index, columns, places, stream_.handle()));
  return stream_.Synchronize();
}

}  // namespace rill::storage_internal
