// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/testing/fake_row_counter.h"

#include <cstdint>

#include "rill/base/status_macros.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

absl::StatusOr<TensorDict> StateOf(int64_t rows) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::From<int64_t>({rows}, Shape()));
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set("rows", tensor));
  return state;
}

absl::StatusOr<int64_t> RowsOf(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(const Tensor rows, state.Get("rows"));
  return rows.Item<int64_t>();
}

class FakeRowCounter final : public BatchTransform {
 public:
  absl::string_view name() const override { return "FakeRowCounter"; }
  bool is_stateful() const override { return true; }
  absl::StatusOr<TensorDict> InitialState() const override {
    return StateOf(0);
  }

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(int64_t rows, RowsOf(*state));
    RILL_ASSIGN_OR_RETURN(
        Tensor numbers,
        Tensor::Empty(DType::kInt64, batch->batch_shape().Concat({1})));
    RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> values, numbers.Flat<int64_t>());
    for (int64_t& value : values) value = rows++;
    RILL_RETURN_IF_ERROR(batch->Set("row_number", numbers));
    RILL_ASSIGN_OR_RETURN(*state, StateOf(rows));
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOnHost(
        "FakeRowCounter::ForwardSpec", "row_number", spec));
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(
        after.Set("row_number", LeafSpec::Unbounded(DType::kInt64, {1})));
    return after;
  }
};

class FakeWriteCounter final : public BatchTransform {
 public:
  absl::string_view name() const override { return "FakeWriteCounter"; }
  bool is_stateful() const override { return true; }
  absl::StatusOr<TensorDict> InitialState() const override {
    return StateOf(0);
  }

  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const int64_t rows, RowsOf(*state));
    RILL_ASSIGN_OR_RETURN(*state,
                          StateOf(rows + batch->batch_shape().num_elements()));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<BatchTransform> MakeFakeRowCounter() {
  return std::make_unique<FakeRowCounter>();
}

std::unique_ptr<BatchTransform> MakeFakeWriteCounter() {
  return std::make_unique<FakeWriteCounter>();
}

}  // namespace rill
