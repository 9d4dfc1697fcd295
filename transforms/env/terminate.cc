// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/terminate.h"

#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kCreate = "Terminate::Create";
constexpr absl::string_view kPlanSteps = "Terminate::PlanSteps";

// Both are set: an Env promises that done follows terminated.
constexpr absl::string_view kFlags[] = {"next/terminated", "next/done"};

class TerminateTransform final : public StepTransform {
 public:
  explicit TerminateTransform(Terminate::Options options)
      : options_(std::move(options)) {}

  absl::string_view name() const override { return "Terminate"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Texts("in_keys", options_.in_keys)
        .Function("stop", true);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (const std::string& key : options_.in_keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf, transforms_internal::FindSpec(
                                                     kPlanSteps, key, step));
      transforms_internal::AddLeaf(key, leaf, LeafUse::kRead, &plan);
    }
    for (const absl::string_view flag : kFlags) {
      RILL_RETURN_IF_ERROR(transforms_internal::AddFlag(
          kPlanSteps, flag, LeafUse::kUpdate, &plan));
    }
    return plan;
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const size_t read = options_.in_keys.size();
    const absl::Span<bool> terminated = leaves[read].As<bool>();
    const absl::Span<bool> done = leaves[read + 1].As<bool>();
    for (size_t lane = 0; lane < done.size(); ++lane) {
      if (!options_.stop(leaves.first(read), static_cast<int64_t>(lane))) {
        continue;
      }
      terminated[lane] = true;
      done[lane] = true;
    }
    return absl::OkStatus();
  }

 private:
  const Terminate::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> Terminate::Create(
    Options options) {
  if (options.stop == nullptr) {
    return InvalidArgument(kCreate, ": stop: got none, want a predicate");
  }
  for (const std::string& key : options.in_keys) {
    RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": in_keys";
    if (absl::c_count(options.in_keys, key) == 1 &&
        !absl::c_linear_search(kFlags, key)) {
      continue;
    }
    return InvalidArgument(
        kCreate, ": in_keys: got \"", key,
        "\", want each key once and not the flags that are written");
  }
  return std::make_unique<TerminateTransform>(std::move(options));
}

}  // namespace rill
