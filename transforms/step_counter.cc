// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kPlanSteps = "StepCounter::PlanSteps";

std::string Next(absl::string_view key) { return absl::StrCat("next/", key); }

class StepCounterTransform final : public StepTransform {
 public:
  explicit StepCounterTransform(const StepCounter::Options& options)
      : options_(options) {}

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

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    // The root first: the calls find the leaves at the places kCount and
    // kNextCount.
    for (const std::string& key :
         {options_.step_count_key, Next(options_.step_count_key)}) {
      RILL_RETURN_IF_ERROR(
          plan.spec.Set(key, LeafSpec::Unbounded(DType::kInt64, {1})));
      plan.leaves.push_back({.key = key,
                             .dtype = DType::kInt64,
                             .shape = {1},
                             .use = LeafUse::kWrite});
    }
    // Without a limit no flag is touched, so the environment may have none.
    if (!options_.max_steps.has_value()) return plan;
    RILL_RETURN_IF_ERROR(AddFlag(Next(options_.truncated_key), &plan));
    if (options_.update_done) {
      RILL_RETURN_IF_ERROR(AddFlag(Next(options_.done_key), &plan));
    }
    return plan;
  }

  // Only the root: the count below next is that of the step that ended the
  // episode.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    const absl::Span<int64_t> counts = leaves[kCount].As<int64_t>();
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) counts[lane] = 0;
    }
    return absl::OkStatus();
  }

  // One pass over the counts also finds whether any lane has got to the limit,
  // in the sign bits of `all_left`. The flags are read in the rare second pass
  // only.
  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const absl::Span<const int64_t> before = leaves[kCount].As<int64_t>();
    const absl::Span<int64_t> counts = leaves[kNextCount].As<int64_t>();
    const int64_t limit = options_.max_steps.value_or(INT64_MAX);
    // Steps that are left, to be read as int64: below zero where a count has
    // got to the limit. A count far below zero wraps to that too, so the second
    // pass compares exactly. Unsigned, since signed overflow is undefined.
    const auto left = [limit](int64_t count) {
      return static_cast<uint64_t>(limit - 1) - static_cast<uint64_t>(count);
    };
    size_t lane = 0;
    // Compilers make vectors of blocks that overlap nothing: `block` keeps them
    // from assuming that `counts` overlaps `before`.
    constexpr size_t kBlock = 8;
    uint64_t all_left[kBlock] = {};
    for (; lane + kBlock <= counts.size(); lane += kBlock) {
      int64_t block[kBlock];
      for (size_t i = 0; i < kBlock; ++i) {
        // A count at the largest number stays there.
        block[i] = before[lane + i] + (before[lane + i] != INT64_MAX);
        // The OR of sign bits is set where any of them is.
        all_left[i] |= left(block[i]);
      }
      for (size_t i = 0; i < kBlock; ++i) counts[lane + i] = block[i];
    }
    for (; lane < counts.size(); ++lane) {
      counts[lane] = before[lane] + (before[lane] != INT64_MAX);
      all_left[0] |= left(counts[lane]);
    }
    // Most steps end no episode.
    if (std::none_of(
            std::begin(all_left), std::end(all_left),
            [](uint64_t any) { return static_cast<int64_t>(any) < 0; })) {
      return absl::OkStatus();
    }
    // The flags that the environment has set stay.
    for (const BoundLeaf& flag : leaves.subspan(kFlags)) {
      const absl::Span<bool> flags = flag.As<bool>();
      for (size_t lane = 0; lane < counts.size(); ++lane) {
        flags[lane] |= counts[lane] >= limit;
      }
    }
    return absl::OkStatus();
  }

 private:
  // Places in the plan's leaves.
  static constexpr size_t kCount = 0;
  static constexpr size_t kNextCount = 1;
  static constexpr size_t kFlags = 2;

  static absl::Status AddFlag(const std::string& key, StepPlan* plan) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckIsFlag(kPlanSteps, key, plan->spec));
    plan->leaves.push_back({.key = key,
                            .dtype = DType::kBool,
                            .shape = {1},
                            .use = LeafUse::kUpdate});
    return absl::OkStatus();
  }

  const StepCounter::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> StepCounter::Create(
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
