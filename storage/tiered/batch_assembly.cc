// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/batch_assembly.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/row_copy.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kMaxStagingBytes = int64_t{64} << 20;

int64_t LeafBytes(const LeafSpec& leaf) {
  return leaf.shape.num_elements() * DTypeSize(leaf.dtype);
}

}  // namespace

BatchAssembly::BatchAssembly(const TensorDictSpec& spec, Device device,
                             Stream stream)
    : spec_(spec), tree_(spec), device_(device), stream_(std::move(stream)) {
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    row_bytes_ += LeafBytes(leaf.spec);
  }
}

absl::StatusOr<std::unique_ptr<BatchAssembly>> BatchAssembly::Create(
    const TensorDictSpec& spec, Device device) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<BatchAssembly>(
      new BatchAssembly(spec, device, std::move(stream)));
}

bool BatchAssembly::FindLeaves(const TensorDict& dict, const LeafKeys& keys,
                               std::vector<const Tensor*>* tensors) const {
  if (keys) {
    if (dict.num_leaves() != static_cast<int64_t>(keys->size())) return false;
    tensors->clear();
    for (const std::string& key : *keys) tensors->push_back(dict.Find(key));
  } else if (!tree_.Find(dict, tensors)) {
    return false;
  }
  return std::find(tensors->begin(), tensors->end(), nullptr) == tensors->end();
}

bool BatchAssembly::Fits(int64_t n, const LeafKeys& keys,
                         absl::Span<const Buffer* const> lent,
                         const TensorDict& out) const {
  thread_local std::vector<const Tensor*> tensors;
  thread_local std::vector<ByteExtent> extents;
  extents.clear();
  const Shape batch_shape = {n};
  const ReuseRules rules = RulesToTakeRows(device_);
  if (!(out.batch_shape() == batch_shape) || !FindLeaves(out, keys, &tensors)) {
    return false;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LeafSpec* const leaf =
        keys ? spec_.Find((*keys)[i]) : &spec_.leaves()[i].spec;
    const Tensor& tensor = *tensors[i];
    if (leaf == nullptr ||
        !MayReuse(tensor, leaf->dtype, batch_shape, leaf->shape, rules) ||
        std::find(lent.begin(), lent.end(), tensor.buffer().get()) !=
            lent.end()) {
      return false;
    }
    extents.push_back(ByteExtent::Of(tensor, 1));
  }
  return LieApart(extents);
}

absl::StatusOr<TensorDict> BatchAssembly::MakeBatch(
    int64_t n, const LeafKeys& keys) const {
  if (!keys) return spec_.Empty({n}, RowMemory(device_));
  TensorDictSpec some;
  for (const std::string& key : *keys) {
    const LeafSpec* const leaf = spec_.Find(key);
    if (leaf == nullptr) continue;  // The storage below says so.
    RILL_RETURN_IF_ERROR(some.Set(key, *leaf));
  }
  return some.Empty({n}, RowMemory(device_));
}

TensorDict BatchAssembly::HostRows(int64_t n, const LeafKeys& keys,
                                   Staging* staging) const {
  if (n > kMaxStagingBytes / std::max<int64_t>(row_bytes_, 1)) return {};
  if (staging->capacity < n) {
    const Tensor::Options memory = {device_, device_.is_cpu()
                                                 ? MemoryKind::kPageable
                                                 : MemoryKind::kPinned};
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
                                const LeafKeys& keys, TensorDict* batch) const {
  thread_local std::vector<const Tensor*> from;
  thread_local std::vector<const Tensor*> to;
  thread_local std::vector<RowColumn> columns;
  TensorDict moved;
  const TensorDict* source = &rows;
  if (!device_.is_cpu() && !rows.is_pinned()) {
    RILL_ASSIGN_OR_RETURN(moved, rows.To(device_));
    source = &moved;
  }
  if (!FindLeaves(*source, keys, &from) || !FindLeaves(*batch, keys, &to)) {
    return absl::InternalError("TieredStorage::Read: got rows of other leaves");
  }
  columns.clear();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i]->num_elements() == 0) continue;
    const int64_t width = to[i]->size_bytes() / batch->batch_shape()[0];
    columns.push_back({.table = to[i]->raw_data(),
                       .table_stride = to[i]->strides_bytes()[0],
                       .batch = from[i]->raw_data(),
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
