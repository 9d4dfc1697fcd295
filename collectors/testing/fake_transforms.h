// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_
#define RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/transform.h"

namespace rill {

// Functions in the places of a transform; empty ones do nothing.
class LambdaTransform final : public Transform {
 public:
  struct Options {
    std::string name = "Lambda";
    std::function<absl::Status(absl::Span<const uint8_t>, TensorDict*)>
        on_reset = nullptr;
    std::function<absl::Status(TensorDict*)> on_step = nullptr;
    std::function<absl::StatusOr<TensorDictSpec>(TensorDictSpec)> step_spec =
        nullptr;
  };
  explicit LambdaTransform(Options options) : options_(std::move(options)) {}

  absl::string_view name() const override { return options_.name; }
  absl::Status OnReset(absl::Span<const uint8_t> mask,
                       TensorDict* root) override {
    return options_.on_reset ? options_.on_reset(mask, root) : absl::OkStatus();
  }
  absl::Status OnStep(TensorDict* step) override {
    return options_.on_step ? options_.on_step(step) : absl::OkStatus();
  }
  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override {
    if (!options_.step_spec) return spec;
    return options_.step_spec(spec);
  }

 private:
  Options options_;
};

// Adds `next/seen` int64 [lanes, 1], the number of steps that it has seen in
// its life: a state that does not stand in the data.
class SeenTransform final : public Transform {
 public:
  absl::string_view name() const override { return "Seen"; }
  absl::Status OnStep(TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(
        Tensor seen,
        Tensor::Zeros(DType::kInt64, step->batch_shape().Concat({1})));
    RILL_ASSIGN_OR_RETURN(auto values, seen.Flat<int64_t>());
    for (int64_t& value : values) value = seen_;
    ++seen_;
    return step->Set("next/seen", std::move(seen));
  }
  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(
        after.Set("next/seen", LeafSpec::Unbounded(DType::kInt64, {1})));
    return after;
  }
  absl::StatusOr<TensorDict> SaveState() const override {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(Tensor seen,
                          Tensor::From<int64_t>({seen_}, Shape({})));
    RILL_RETURN_IF_ERROR(state.Set("seen", std::move(seen)));
    return state;
  }
  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(Tensor seen, state.Get("seen"));
    RILL_ASSIGN_OR_RETURN(seen_, seen.Item<int64_t>());
    return absl::OkStatus();
  }

 private:
  int64_t seen_ = 0;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_
