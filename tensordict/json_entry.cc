// SPDX-License-Identifier: Apache-2.0
// TensorDict's entries of JSON texts: one for all rows, or one a row. They are
// joined and copied to one another, so one class serves both.
#include <cstdint>
#include <memory>
#include <optional>
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
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace tensor_internal {
namespace {

class JsonEntry final : public NonTensorEntry {
 public:
  explicit JsonEntry(NonTensor value)
      : NonTensorEntry(EntryKind::kNonTensor), value_(std::move(value)) {}
  explicit JsonEntry(NonTensorStack column)
      : NonTensorEntry(EntryKind::kNonTensorStack),
        column_(std::move(column)) {}

  static const JsonEntry& Of(const NonTensorEntry& entry) {
    return static_cast<const JsonEntry&>(entry);
  }
  const NonTensor& value() const { return value_; }
  // Also of one value for all rows.
  absl::StatusOr<NonTensorStack> Column(const Shape& batch_shape) const {
    if (column_.has_value()) return *column_;
    return NonTensorStack::Filled(batch_shape, value_);
  }

  absl::Status CheckFits(absl::string_view key,
                         const Shape& batch_shape) const override {
    if (!column_.has_value() || column_->shape() == batch_shape) {
      return absl::OkStatus();
    }
    return InvalidArgument("TensorDict::Set: shape of \"", key, "\": got ",
                           column_->shape().ToString(),
                           ", want the batch shape ", batch_shape.ToString(),
                           " for a value a row");
  }

  void VisitTensors(absl::FunctionRef<void(const Tensor&)>) const override {}

  absl::StatusOr<EntryValue> Map(const ShapeOp& op, LeafFn fn,
                                 const EntryPath& path) const override {
    if (!column_.has_value() || op.kind == ShapeOp::kCopy) {
      return EntryValue(shared_from_this());
    }
    absl::StatusOr<NonTensorStack> mapped =
        column_->MapIndex([&](const Tensor& index) { return fn(index, path); });
    if (!mapped.ok()) return WithKey(mapped.status(), path);
    const Shape batch_shape = op.Of(column_->shape());
    if (!(mapped->shape() == batch_shape)) {
      return WithKey(
          InvalidArgument("TensorDict::MapShape: shape of the indices: got ",
                          mapped->shape().ToString(), ", want the batch shape ",
                          batch_shape.ToString()),
          path);
    }
    // Without dimensions a column is a single value.
    if (batch_shape.rank() > 0) {
      return EntryValue(std::make_shared<JsonEntry>(*std::move(mapped)));
    }
    RILL_ASSIGN_OR_RETURN(NonTensor value, mapped->At(0));
    return EntryValue(std::make_shared<JsonEntry>(std::move(value)));
  }

  absl::StatusOr<NonTensorPointer> Gather(
      absl::Span<const int64_t> rows) const override {
    if (!column_.has_value()) return shared_from_this();
    RILL_ASSIGN_OR_RETURN(NonTensorStack chosen, column_->Gather(rows));
    return std::make_shared<JsonEntry>(std::move(chosen));
  }

  // One equal value stays one value; else each dictionary's becomes a column.
  absl::StatusOr<NonTensorPointer> Join(
      const JoinOp& op, absl::Span<const JoinPart> parts) const override {
    bool one = true;
    for (const JoinPart& part : parts) {
      const JsonEntry& entry = Of(*part.entry);
      one = one && !entry.column_.has_value() && entry.value_ == value_;
    }
    if (one) return shared_from_this();
    std::vector<NonTensorStack> columns;
    for (const JoinPart& part : parts) {
      RILL_ASSIGN_OR_RETURN(NonTensorStack column,
                            Of(*part.entry).Column(*part.batch_shape));
      columns.push_back(std::move(column));
    }
    RILL_ASSIGN_OR_RETURN(NonTensorStack joined,
                          op.new_dim ? NonTensorStack::Stack(columns, op.dim)
                                     : NonTensorStack::Cat(columns, op.dim));
    return std::make_shared<JsonEntry>(std::move(joined));
  }

  absl::StatusOr<bool> CopyFrom(const NonTensorEntry& from,
                                const Shape& batch_shape, bool,
                                const EntryPath& path) const override {
    const std::optional<NonTensorStack>& column = Of(from).column_;
    if (!column.has_value() || column->shape() == batch_shape) return true;
    return WithKey(InvalidArgument("TensorDict::CopyFrom: shape: got ",
                                   column->shape().ToString(), ", want ",
                                   batch_shape.ToString()),
                   path);
  }

  absl::Status Compare(const NonTensorEntry& want, const Comparison& comparison,
                       const EntryPath& path) const override {
    const JsonEntry& other = Of(want);
    if (!column_.has_value()) {
      if (value_ == other.value_) return absl::OkStatus();
      return comparison.Differs(path, value_.json, other.value_.json);
    }
    const Shape& shape = column_->shape();
    if (!(shape == other.column_->shape())) {
      return comparison.Differs(path, shape.ToString(),
                                other.column_->shape().ToString());
    }
    for (int64_t i = 0; i < column_->size(); ++i) {
      RILL_ASSIGN_OR_RETURN(const NonTensor a, column_->At(i));
      RILL_ASSIGN_OR_RETURN(const NonTensor b, other.column_->At(i));
      if (a == b) continue;
      return comparison.DiffersAt(
          path, shape, i, absl::StrCat("got ", a.json, ", want ", b.json));
    }
    return absl::OkStatus();
  }

  std::string DebugString() const override {
    return column_.has_value() ? column_->DebugString() : value_.json;
  }

 private:
  NonTensor value_;
  std::optional<NonTensorStack> column_;  // Instead of the value.
};

}  // namespace
}  // namespace tensor_internal

using tensor_internal::JsonEntry;

absl::Status TensorDict::Set(absl::string_view key, NonTensor value) {
  return Internal::CheckAndSet(this, key,
                               std::make_shared<JsonEntry>(std::move(value)));
}

absl::Status TensorDict::Set(absl::string_view key, NonTensorStack values) {
  return Internal::CheckAndSet(this, key,
                               std::make_shared<JsonEntry>(std::move(values)));
}

absl::StatusOr<NonTensor> TensorDict::GetNonTensor(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(const Entry* entry,
                        Internal::FindKind(*this, "TensorDict::GetNonTensor",
                                           key, EntryKind::kNonTensor));
  return JsonEntry::Of(*entry->other()).value();
}

absl::StatusOr<NonTensorStack> TensorDict::GetNonTensorStack(
    absl::string_view key) const {
  RILL_ASSIGN_OR_RETURN(
      const Entry* entry,
      Internal::FindKind(*this, "TensorDict::GetNonTensorStack", key,
                         EntryKind::kNonTensorStack));
  return JsonEntry::Of(*entry->other())
      .Column(Internal::LevelOf(*this, key)->batch_shape_);
}

}  // namespace rill
