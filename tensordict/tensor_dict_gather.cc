// SPDX-License-Identifier: Apache-2.0
// TensorDict's copies of rows into a batch, new or reused.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/leaf_allocator.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

// Collects columns and copies them all at once, on the host or one device: the
// gather then takes each row of all columns together. Without allocation: a
// plan that is full is carried out first.
class GatherPlan {
 public:
  explicit GatherPlan(absl::Span<const int64_t> rows) : rows_(rows) {}

  absl::Status Add(const Tensor& table, const Tensor& batch) {
    if (batch.num_elements() == 0) return absl::OkStatus();
    const int64_t item = DTypeSize(table.dtype());
    if (!tensor_internal::IsRowMajor(table.shape(), table.strides_bytes(), 1,
                                     item)) {
      return AddStrided(table, batch);
    }
    if (count_ == columns_.size() || device_ != table.device()) {
      RILL_RETURN_IF_ERROR(Run());
      device_ = table.device();
    }
    const int64_t width = batch.size_bytes() / batch.shape()[0];
    columns_[count_++] = {table.raw_data(), table.strides_bytes()[0],
                          batch.raw_data(), width, width};
    return absl::OkStatus();
  }

  absl::Status Run() {
    if (count_ == 0) return absl::OkStatus();
    const auto columns = absl::MakeConstSpan(columns_.data(), count_);
    count_ = 0;
    if (device_.is_cpu()) {
      GatherRowsOnHost(columns, rows_);
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(Backend* const backend, GetBackend(device_));
    RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(device_));
    absl::Status status =
        backend->GatherRows(device_.index, columns, rows_, stream.handle());
    // Waited for also after an error, as the copy uses the caller's rows.
    absl::Status done = stream.Synchronize();
    return status.ok() ? done : status;
  }

 private:
  // Rows that are not one run of bytes.
  absl::Status AddStrided(const Tensor& table, const Tensor& batch) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Tensor from, table.Index(rows_[i]));
      RILL_ASSIGN_OR_RETURN(const Tensor to,
                            batch.Index(static_cast<int64_t>(i)));
      RILL_RETURN_IF_ERROR(to.CopyFrom(from));
    }
    return absl::OkStatus();
  }

  absl::Span<const int64_t> rows_;
  std::array<RowColumn, 32> columns_;
  size_t count_ = 0;
  Device device_;
};

}  // namespace

// `out` has the entries of the result, with layouts that fit, and shares no
// buffer with what is read: a gather would else read rows that it has written.
bool TensorDict::Internal::CanHold(const TensorDict& out,
                                   const TensorDict& like, const ShapeOp& op) {
  if (!(out.batch_shape_ == op.Of(like.batch_shape_)) ||
      out.entries_.size() != like.entries_.size()) {
    return false;
  }
  for (size_t i = 0; i < like.entries_.size(); ++i) {
    const Entry& entry = like.entries_[i];
    const Entry* held = FindHere(out, entry.name, i);
    if (held == nullptr) return false;
    if (const Tensor* leaf = entry.tensor()) {
      const Tensor* const to = held->tensor();
      if (to == nullptr || to->dtype() != leaf->dtype() ||
          to->device() != leaf->device() ||
          !(to->shape() == op.Of(leaf->shape())) || !to->is_contiguous() ||
          !to->is_writable() || to->buffer() == leaf->buffer()) {
        return false;
      }
    } else if (const TensorDict* nested = entry.dict()) {
      if (held->dict() == nullptr || !CanHold(*held->dict(), *nested, op)) {
        return false;
      }
    } else if (entry.family() != EntryKind::kNonTensor ||
               held->family() != EntryKind::kNonTensor) {
      return false;  // Of the other kinds each result is a new one.
    }
  }
  return true;
}

// A dictionary as CanHold wants it; small leaves of the host share one buffer.
absl::StatusOr<TensorDict> TensorDict::Internal::MakeLike(
    const TensorDict& like, const ShapeOp& op) {
  tensor_internal::LeafAllocator allocator{Tensor::Options()};
  like.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    if (!leaf.is_host()) return;
    allocator.Plan(leaf.dtype(), op.Of(leaf.shape()));
  });
  return Map(like, op,
             [&](const Tensor& leaf, auto&) -> absl::StatusOr<Tensor> {
               const int rank = op.prefix.rank() + leaf.rank() - op.old_rank;
               if (rank > Shape::kMaxRank) {
                 return InvalidArgument(
                     "TensorDict: rank of a leaf of the result: got ", rank,
                     ", want at most ", Shape::kMaxRank);
               }
               const Shape shape = op.Of(leaf.shape());
               if (leaf.is_host()) return allocator.Make(leaf.dtype(), shape);
               return Tensor::Empty(leaf.dtype(), shape,
                                    {leaf.device(), MemoryKind::kDevice});
             });
}

// Pointers in `changes` are into the dictionary that was walked, which nobody
// has changed since.
void TensorDict::Internal::Commit(Changes changes) {
  for (Change& change : changes) change.entry->value = std::move(change.value);
}

absl::Status TensorDict::Internal::GatherOthers(const TensorDict& from,
                                                absl::Span<const int64_t> rows,
                                                const TensorDict& to,
                                                const Path* up,
                                                Changes* changes) {
  for (size_t i = 0; i < from.entries_.size(); ++i) {
    const Entry& entry = from.entries_[i];
    if (entry.tensor() != nullptr) continue;
    const Path path = {up, entry.name};
    Entry* target = const_cast<Entry*>(FindHere(to, entry.name, i));
    if (const TensorDict* nested = entry.dict()) {
      RILL_RETURN_IF_ERROR(
          GatherOthers(*nested, rows, *target->dict(), &path, changes));
      continue;
    }
    absl::StatusOr<tensor_internal::NonTensorPointer> gathered =
        entry.other()->Gather(rows);
    if (!gathered.ok()) return WithKey(gathered.status(), path);
    if (gathered->get() == target->other()) continue;
    changes->push_back({target, *std::move(gathered)});
  }
  return absl::OkStatus();
}

absl::Status TensorDict::GatherInto(absl::Span<const int64_t> rows,
                                    TensorDict* out) const {
  if (out == nullptr) {
    return InvalidArgument("TensorDict::GatherInto: out is null");
  }
  if (batch_shape_.rank() == 0) {
    return InvalidArgument(
        "TensorDict::Gather: rank of the batch shape: got 0, want at least 1");
  }
  // All rows are checked before a byte moves, so kernels need not check.
  for (const int64_t row : rows) {
    if (row < 0 || row >= batch_shape_[0]) {
      return OutOfRange("TensorDict::Gather: row ", row, " is outside [0, ",
                        batch_shape_[0], ") of batch shape ",
                        batch_shape_.ToString());
    }
  }
  const Internal::ShapeOp op = {
      Internal::ShapeOp::kRows, {static_cast<int64_t>(rows.size())}, 1};
  // GatherOthers may refuse an entry, so it comes first. The copies follow, and
  // new values of its entries are committed at the end.
  const auto gather_to = [&](TensorDict* target) -> absl::Status {
    Internal::Changes changes;
    RILL_RETURN_IF_ERROR(
        Internal::GatherOthers(*this, rows, *target, nullptr, &changes));
    GatherPlan plan(rows);
    RILL_RETURN_IF_ERROR(Internal::ForEachPair(
        *this, *target, [&](const Tensor& table, const Tensor& batch) {
          return plan.Add(table, batch);
        }));
    RILL_RETURN_IF_ERROR(plan.Run());
    if (!changes.empty()) Internal::Commit(std::move(changes));
    Internal::CopyLabels(*this, op, target);
    return absl::OkStatus();
  };
  if (Internal::CanHold(*out, *this, op)) return gather_to(out);
  RILL_RETURN_IF_ERROR(
      Internal::CheckUnlocked(*out, "TensorDict::GatherInto: out"));
  RILL_ASSIGN_OR_RETURN(TensorDict fresh, Internal::MakeLike(*this, op));
  RILL_RETURN_IF_ERROR(gather_to(&fresh));
  *out = std::move(fresh);
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TensorDict::Gather(
    absl::Span<const int64_t> rows) const {
  TensorDict out;
  RILL_RETURN_IF_ERROR(GatherInto(rows, &out));
  return out;
}

}  // namespace rill
