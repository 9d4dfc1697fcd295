// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dense_storage.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/storage/dense_storage_impl.h"

namespace rill {
namespace storage_internal {
namespace {

// A device's storage lies in device memory unless it is asked to be pinned.
MemoryKind KindOf(const DenseStorage::Options& options) {
  return !options.device.is_cpu() &&
                 options.memory_kind == MemoryKind::kPageable
             ? MemoryKind::kDevice
             : options.memory_kind;
}

// Gives what every leaf of `out` must be to be read into, one contiguous array
// a leaf. Leaves `places` unusable where `out` does not fit.
bool FindPlaces(const DenseStorageImpl::Rows& rows, int64_t n,
                const TensorDict& out, std::vector<LeafBatch>* places) {
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape)) return false;
  const auto& leaves = rows.spec().leaves();
  places->clear();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Tensor* tensor = out.Find(leaves[i].key);
    if (tensor == nullptr || tensor->dtype() != leaves[i].spec.dtype ||
        tensor->shape().sizes().subspan(1) != leaves[i].spec.shape.sizes() ||
        !tensor->is_writable() || !tensor->is_contiguous() ||
        !rows.table->Reaches(*tensor) || rows.table->Holds(*tensor)) {
      return false;
    }
    places->push_back(
        {i, tensor->raw_data(), rows.table->layout().fields()[i].width});
  }
  return rows.tree.HoldsOnly(static_cast<int64_t>(leaves.size()), out);
}

std::vector<LeafBatch>& ThreadPlaces() {
  thread_local std::vector<LeafBatch> places;
  return places;
}

}  // namespace

DenseStorageImpl::DenseStorageImpl(const DenseStorage::Options& options)
    : lanes_{options.lanes, options.capacity / options.lanes},
      options_(options),
      device_(KindOf(options) == MemoryKind::kDevice ? options.device
                                                     : Device::Cpu()),
      rings_(lanes_) {}

absl::Status DenseStorageImpl::MakeRowsFromOptions() {
  if (options_.spec.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto rows, MakeRows(options_.spec));
  absl::MutexLock lock(&rows_mutex_);
  rows_ = std::move(rows);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DenseStorageImpl::Rows>>
DenseStorageImpl::MakeRows(const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(EventLeaves events,
                        EventLeaves::Find(spec, options_.event_keys));
  RILL_ASSIGN_OR_RETURN(
      RowLayout layout,
      RowLayout::Create(spec, lanes_, options_.layout, options_.order));
  RILL_ASSIGN_OR_RETURN(
      auto table,
      RowTable::Create(std::move(layout), options_.device, KindOf(options_)));
  auto rows = std::make_unique<Rows>(std::move(table));
  rows->events = std::move(events);
  return rows;
}

int64_t DenseStorageImpl::size() const {
  absl::ReaderMutexLock lock(&rows_mutex_);
  return rings_.size();
}

std::vector<Cursor> DenseStorageImpl::cursors() const {
  absl::ReaderMutexLock lock(&rows_mutex_);
  return rings_.cursors();
}

TensorDictSpec DenseStorageImpl::spec() const {
  absl::ReaderMutexLock lock(&rows_mutex_);
  return rows_ == nullptr ? options_.spec : rows_->spec();
}

absl::Status DenseStorageImpl::Read(absl::Span<const Slot> slots,
                                    TensorDict* out) const {
  if (out == nullptr) {
    return absl::InvalidArgumentError(
        "DenseStorage::Read: out: got null, want a TensorDict");
  }
  const int64_t n = static_cast<int64_t>(slots.size());
  absl::ReaderMutexLock lock(&rows_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive("DenseStorage::Read", slots));
  if (rows_ == nullptr) {
    *out = TensorDict({0});
    return absl::OkStatus();
  }
  std::vector<LeafBatch>& places = ThreadPlaces();
  if (FindPlaces(*rows_, n, *out, &places)) {
    return rows_->table->Read(slots, places);
  }
  RILL_ASSIGN_OR_RETURN(
      TensorDict fresh,
      rows_->spec().Empty({n},
                          {device_, device_.is_cpu() ? MemoryKind::kPageable
                                                     : MemoryKind::kDevice}));
  if (!FindPlaces(*rows_, n, fresh, &places)) {
    return absl::InternalError("DenseStorage::Read: made an unfit batch");
  }
  RILL_RETURN_IF_ERROR(rows_->table->Read(slots, places));
  *out = std::move(fresh);
  return absl::OkStatus();
}

absl::StatusOr<SlotLease> DenseStorageImpl::Lease(SlotRange range) const {
  absl::ReaderMutexLock lock(&rows_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive("DenseStorage::Lease", range));
  TensorDict view({0});
  if (rows_ != nullptr) {
    RILL_ASSIGN_OR_RETURN(view, rows_->table->View(range));
  }
  return SlotLease(std::move(view), leases_.Add(range));
}

}  // namespace storage_internal

absl::StatusOr<std::unique_ptr<Storage>> DenseStorage::Create(
    const Options& options) {
  // A cursor each is made at once, so there is a limit that nobody misses.
  constexpr int64_t kMaxLanes = int64_t{1} << 24;
  const auto refuse = [](absl::string_view option, const auto& got,
                         const auto&... want) {
    return absl::InvalidArgumentError(
        absl::StrCat("DenseStorage::Create: Options::", option, ": got ", got,
                     ", want ", want...));
  };
  if (options.capacity <= 0) {
    return refuse("capacity", options.capacity, "> 0");
  }
  if (options.lanes <= 0 || options.lanes > kMaxLanes) {
    return refuse("lanes", options.lanes, "in [1, ", kMaxLanes, "]");
  }
  if (options.capacity % options.lanes != 0) {
    return refuse("capacity", options.capacity,
                  "a multiple of lanes = ", options.lanes);
  }
  const bool is_cpu = options.device.is_cpu();
  if (options.memory_kind == MemoryKind::kMappedFile ||
      (is_cpu && options.memory_kind != MemoryKind::kPageable)) {
    return refuse("memory_kind",
                  absl::StrCat(MemoryKindName(options.memory_kind), " of ",
                               options.device.ToString()),
                  is_cpu ? "pageable; name a device for pinned memory"
                         : "device or pinned");
  }
  auto storage = std::make_unique<storage_internal::DenseStorageImpl>(options);
  RILL_RETURN_IF_ERROR(storage->MakeRowsFromOptions());
  return storage;
}

}  // namespace rill
