// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/function_transform.h"

#include <utility>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

absl::Status Call(const FunctionTransform::Function& function,
                  TensorDict* batch) {
  return function ? function(batch) : absl::OkStatus();
}

// An empty function says that the spec stays.
absl::StatusOr<TensorDictSpec> Call(
    const FunctionTransform::SpecFunction& function,
    const TensorDictSpec& spec) {
  if (function) return function(spec);
  return spec;
}

class FunctionTransformImpl final : public BatchTransform {
 public:
  explicit FunctionTransformImpl(FunctionTransform::Options options)
      : options_(std::move(options)) {}

  absl::string_view name() const override { return options_.name; }
  // Functions of steps were options of this once; saves of then compare them.
  OptionValues option_values() const override {
    return OptionValues()
        .Function("forward", options_.forward != nullptr)
        .Function("inverse", options_.inverse != nullptr)
        .Function("on_step", false)
        .Function("forward_spec", options_.forward_spec != nullptr)
        .Function("inverse_spec", options_.inverse_spec != nullptr)
        .Function("step_spec", false);
  }

  bool is_stateful() const override { return options_.is_stateful; }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_RETURN_IF_ERROR(Call(options_.forward, batch)) << "in " << name();
    return absl::OkStatus();
  }
  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_RETURN_IF_ERROR(Call(options_.inverse, batch)) << "in " << name();
    return absl::OkStatus();
  }
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    return Call(options_.forward_spec, spec);
  }
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    return Call(options_.inverse_spec, spec);
  }

 private:
  const FunctionTransform::Options options_;
};

// A spec function without its function would promise what nothing does.
absl::Status CheckPair(absl::string_view name, bool has_function,
                       bool has_spec) {
  if (has_function || !has_spec) return absl::OkStatus();
  return InvalidArgument("FunctionTransform::Create: ", name,
                         "_spec: got a function, want none without ", name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> FunctionTransform::Create(
    Options options) {
  const bool has_forward = options.forward != nullptr;
  const bool has_inverse = options.inverse != nullptr;
  if (!has_forward && !has_inverse) {
    return InvalidArgument(
        "FunctionTransform::Create: forward, inverse: got none, want at least "
        "one");
  }
  if (options.name.empty()) {
    return InvalidArgument(
        "FunctionTransform::Create: name: got an empty one, want a text");
  }
  for (const absl::Status& status :
       {CheckPair("forward", has_forward, options.forward_spec != nullptr),
        CheckPair("inverse", has_inverse, options.inverse_spec != nullptr)}) {
    if (!status.ok()) return status;
  }
  return std::make_unique<FunctionTransformImpl>(std::move(options));
}

}  // namespace rill
