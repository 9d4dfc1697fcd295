// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/flatten_tensor_dict.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

// A view where strides allow it, else a copy of the leaf.
absl::Status Flatten(TensorDict* batch) {
  if (batch->batch_shape().rank() == 1) return absl::OkStatus();
  absl::StatusOr<TensorDict> flat =
      batch->Reshape({batch->batch_shape().num_elements()});
  RILL_RETURN_IF_ERROR(flat.status()) << "in FlattenTensorDict";
  if (!batch->dim_names().empty()) {
    // The last row of a line and the first of the next are neighbours now.
    RILL_RETURN_IF_ERROR(flat->SetDimNames({std::string(kRowsName)}));
  }
  *batch = *std::move(flat);
  return absl::OkStatus();
}

class FlattenTensorDictTransform final : public BatchTransform {
 public:
  explicit FlattenTensorDictTransform(bool inverse) : inverse_(inverse) {}

  absl::string_view name() const override { return "FlattenTensorDict"; }
  OptionValues option_values() const override {
    return OptionValues().Bool("inverse", inverse_);
  }
  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    return inverse_ ? absl::OkStatus() : Flatten(batch);
  }
  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    return inverse_ ? Flatten(batch) : absl::OkStatus();
  }

 private:
  const bool inverse_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> FlattenTensorDict::Create(
    const Options& options) {
  return std::make_unique<FlattenTensorDictTransform>(options.inverse);
}

}  // namespace rill
