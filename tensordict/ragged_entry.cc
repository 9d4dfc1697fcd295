// SPDX-License-Identifier: Apache-2.0
// TensorDict's entries of rows of different shapes.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace tensor_internal {
namespace {

class RaggedEntry final : public NonTensorEntry {
 public:
  explicit RaggedEntry(RaggedTensor rows)
      : NonTensorEntry(EntryKind::kRagged), rows_(std::move(rows)) {}

  static const RaggedTensor& Of(const NonTensorEntry& entry) {
    return static_cast<const RaggedEntry&>(entry).rows_;
  }

  absl::Status CheckFits(absl::string_view key,
                         const Shape& batch_shape) const override {
    if (batch_shape == Shape({rows_.num_rows()})) return absl::OkStatus();
    return InvalidArgument(
        "TensorDict::Set: rows of \"", key, "\": got ", rows_.num_rows(),
        ", want a batch shape of just that size, not ", batch_shape.ToString());
  }

  void VisitTensors(absl::FunctionRef<void(const Tensor&)> fn) const override {
    fn(rows_.values());
  }

  absl::StatusOr<EntryValue> Map(const ShapeOp& op, LeafFn fn,
                                 const EntryPath& path) const override {
    if (op.kind == ShapeOp::kSelect && op.dim == 0) {
      absl::StatusOr<Tensor> row = rows_.Row(op.begin);
      if (!row.ok()) return WithKey(row.status(), path);
      return EntryValue(*std::move(row));
    }
    absl::StatusOr<RaggedTensor> mapped = InvalidArgument(
        "TensorDict: a ragged tensor: got an operation that changes its shape, "
        "want Index, Slice, Gather or Cat of dimension 0; pad it first "
        "(RaggedTensor::ToPadded)");
    if (op.kind == ShapeOp::kSlice && op.dim == 0) {
      mapped = rows_.Slice(op.begin, op.end);
    } else if (op.kind == ShapeOp::kCopy) {
      absl::StatusOr<Tensor> values = fn(rows_.values(), path);
      mapped = values.ok() ? rows_.WithValues(*values)
                           : absl::StatusOr<RaggedTensor>(values.status());
    }
    if (!mapped.ok()) return WithKey(mapped.status(), path);
    return EntryValue(std::make_shared<RaggedEntry>(*std::move(mapped)));
  }

  absl::StatusOr<NonTensorPointer> Gather(
      absl::Span<const int64_t> rows) const override {
    RILL_ASSIGN_OR_RETURN(RaggedTensor chosen, rows_.Gather(rows));
    return std::make_shared<RaggedEntry>(std::move(chosen));
  }

  absl::StatusOr<NonTensorPointer> Join(
      const JoinOp& op, absl::Span<const JoinPart> parts) const override {
    if (op.new_dim) {
      return InvalidArgument(
          op.caller,
          ": a ragged tensor: got a new dimension, want none; use Cat, "
          "or pad it first (RaggedTensor::ToPadded)");
    }
    std::vector<RaggedTensor> rows;
    for (const JoinPart& part : parts) rows.push_back(Of(*part.entry));
    RILL_ASSIGN_OR_RETURN(RaggedTensor joined, RaggedTensor::Cat(rows));
    return std::make_shared<RaggedEntry>(std::move(joined));
  }

  absl::StatusOr<bool> CopyFrom(const NonTensorEntry& from, const Shape&,
                                bool copies,
                                const EntryPath& path) const override {
    const RaggedTensor& source = Of(from);
    absl::StatusOr<bool> same = source.shapes().BitEquals(rows_.shapes());
    absl::Status status = same.status();
    if (status.ok() && !*same) {
      status =
          InvalidArgument("TensorDict::CopyFrom: shapes of rows: got ",
                          source.DebugString(), ", want ", rows_.DebugString());
    } else if (status.ok()) {
      status = copies ? rows_.values().CopyFrom(source.values())
                      : rows_.values().CheckCopyFrom(source.values());
    }
    if (!status.ok()) return WithKey(status, path);
    return false;
  }

  absl::Status Compare(const NonTensorEntry& want, const Comparison& comparison,
                       const EntryPath& path) const override {
    const RaggedTensor& other = Of(want);
    if (rows_.num_rows() != other.num_rows() ||
        rows_.dtype() != other.dtype()) {
      return comparison.Differs(path, rows_.DebugString(), other.DebugString());
    }
    for (int64_t i = 0; i < other.num_rows(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Tensor a, rows_.Row(i));
      RILL_ASSIGN_OR_RETURN(const Tensor b, other.Row(i));
      const std::string number = absl::StrCat("[", i, "]");
      RILL_RETURN_IF_ERROR(comparison.Tensors(a, b, {&path, number}));
    }
    return absl::OkStatus();
  }

  std::string DebugString() const override { return rows_.DebugString(); }

 private:
  RaggedTensor rows_;
};

}  // namespace
}  // namespace tensor_internal

using tensor_internal::RaggedEntry;

absl::Status TensorDict::Set(absl::string_view key, RaggedTensor rows) {
  return Internal::CheckAndSet(this, key,
                               std::make_shared<RaggedEntry>(std::move(rows)));
}

absl::StatusOr<RaggedTensor> TensorDict::GetRagged(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::GetRagged", key,
                                           EntryKind::kRagged));
  return RaggedEntry::Of(*entry->other());
}

}  // namespace rill
