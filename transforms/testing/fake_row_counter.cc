// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/testing/fake_row_counter.h"

#include <cstdint>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

class FakeRowCounter final : public Transform {
 public:
  absl::string_view name() const override { return "FakeRowCounter"; }

  absl::Status Forward(TensorDict* batch) override {
    RILL_ASSIGN_OR_RETURN(
        Tensor numbers,
        Tensor::Empty(DType::kInt64, batch->batch_shape().Concat({1})));
    RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> values, numbers.Flat<int64_t>());
    int64_t rows = rows_;
    for (int64_t& value : values) value = rows++;
    RILL_RETURN_IF_ERROR(batch->Set("row_number", numbers));
    rows_ = rows;
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(
        after.Set("row_number", LeafSpec::Unbounded(DType::kInt64, {1})));
    return after;
  }

  absl::StatusOr<TensorDict> SaveState() const override {
    RILL_ASSIGN_OR_RETURN(Tensor rows, Tensor::From<int64_t>({rows_}, Shape()));
    TensorDict state;
    RILL_RETURN_IF_ERROR(state.Set("rows", rows));
    return state;
  }

  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(Tensor rows, state.Get("rows"));
    RILL_ASSIGN_OR_RETURN(rows_, rows.Item<int64_t>());
    return absl::OkStatus();
  }

 private:
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Transform> MakeFakeRowCounter() {
  return std::make_unique<FakeRowCounter>();
}

}  // namespace rill
