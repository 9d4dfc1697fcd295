// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kOnReset = "StepCounter::OnReset";
constexpr absl::string_view kOnStep = "StepCounter::OnStep";
constexpr absl::string_view kStepSpec = "StepCounter::StepSpec";

std::string Next(absl::string_view key) { return absl::StrCat("next/", key); }

class StepCounterTransform final : public Transform {
 public:
  explicit StepCounterTransform(const StepCounter::Options& options)
      : options_(options),
        next_key_(Next(options.step_count_key)),
        next_truncated_key_(Next(options.truncated_key)),
        next_done_key_(Next(options.done_key)) {}

  absl::string_view name() const override { return "StepCounter"; }
  OptionValues option_values() const override {
    OptionValues values;
    if (options_.max_steps.has_value()) {
      values.Int("max_steps", *options_.max_steps);
    } else {
      values.None("max_steps");
    }
    values.Text("step_count_key", options_.step_count_key);
    values.Text("truncated_key", options_.truncated_key);
    values.Text("done_key", options_.done_key);
    return values.Bool("update_done", options_.update_done);
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask,
                       TensorDict* root) override {
    return transforms_internal::ResetLeaf(kOnReset, options_.step_count_key,
                                          DType::kInt64, mask, root);
  }

  absl::Status OnStep(TensorDict* step) override {
    const Shape shape = step->batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(
        const Tensor before,
        transforms_internal::ReadLeaf(kOnStep, options_.step_count_key, *step));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
        kOnStep, options_.step_count_key, before, DType::kInt64, shape));
    RILL_ASSIGN_OR_RETURN(
        const Tensor after,
        transforms_internal::FreshLeaf(next_key_, DType::kInt64, shape, step));
    RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> from,
                          before.Flat<int64_t>());
    RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> counts, after.Flat<int64_t>());
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = from[i] == INT64_MAX ? INT64_MAX : from[i] + 1;
    }
    if (!options_.max_steps.has_value()) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(RaiseFlag(next_truncated_key_, counts, shape, step));
    if (!options_.update_done) return absl::OkStatus();
    return RaiseFlag(next_done_key_, counts, shape, step);
  }

  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    const LeafSpec count = LeafSpec::Unbounded(DType::kInt64, {1});
    RILL_RETURN_IF_ERROR(after.Set(options_.step_count_key, count));
    RILL_RETURN_IF_ERROR(after.Set(next_key_, count));
    if (!options_.max_steps.has_value()) return after;
    RILL_RETURN_IF_ERROR(CheckFlagSpec(next_truncated_key_, spec));
    if (options_.update_done) {
      RILL_RETURN_IF_ERROR(CheckFlagSpec(next_done_key_, spec));
    }
    return after;
  }

 private:
  // The flag becomes true where the episode has run long enough.
  absl::Status RaiseFlag(absl::string_view key,
                         absl::Span<const int64_t> counts, const Shape& shape,
                         TensorDict* step) const {
    RILL_ASSIGN_OR_RETURN(const Tensor flag,
                          transforms_internal::OwnLeaf(kOnStep, key, step));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(kOnStep, key, flag,
                                                        DType::kBool, shape));
    RILL_ASSIGN_OR_RETURN(absl::Span<bool> values, flag.Flat<bool>());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = values[i] || counts[i] >= *options_.max_steps;
    }
    return absl::OkStatus();
  }

  static absl::Status CheckFlagSpec(absl::string_view key,
                                    const TensorDictSpec& spec) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec flag,
                          transforms_internal::FindSpec(kStepSpec, key, spec));
    if (flag.dtype == DType::kBool && flag.shape == Shape({1})) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        kStepSpec, ": \"", key, "\": got ", flag.ToString(), ", want bool[1]"));
  }

  const StepCounter::Options options_;
  const std::string next_key_;
  const std::string next_truncated_key_;
  const std::string next_done_key_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transform>> StepCounter::Create(
    const Options& options) {
  if (options.max_steps.has_value() && *options.max_steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("StepCounter::Create: max_steps: got ", *options.max_steps,
                     ", want > 0, or none to count only"));
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.step_count_key))
      << "StepCounter::Create: step_count_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.truncated_key))
      << "StepCounter::Create: truncated_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key))
      << "StepCounter::Create: done_key";
  return std::make_unique<StepCounterTransform>(options);
}

}  // namespace rill
