// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/select.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/structure/key_paths.h"

namespace rill {
namespace {

using transforms_internal::CheckHas;
using transforms_internal::CheckSomeKeys;
using transforms_internal::DeleteEntry;
using transforms_internal::IsAtOrBelowAny;
using transforms_internal::IsFixedInSteps;
using transforms_internal::IsFlag;
using transforms_internal::IsReward;
using transforms_internal::KeptPart;
using transforms_internal::RootOf;
using transforms_internal::RootsOf;

// Drops the leaves of a plan whose keys `drops` is true for: a gather does not
// read them.
void Drop(GatherPlan* plan, absl::FunctionRef<bool(absl::string_view)> drops) {
  std::erase_if(plan->leaves,
                [&](const GatherPlan::Leaf& leaf) { return drops(leaf.key); });
}

}  // namespace

// --- Select ------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Select>> Select::Create(Options options) {
  RILL_RETURN_IF_ERROR(
      CheckSomeKeys("Select::Create", "selected_keys", options.selected_keys));
  return absl::WrapUnique(new Select(std::move(options)));
}

OptionValues Select::option_values() const {
  return OptionValues()
      .Texts("selected_keys", options_.selected_keys)
      .Bool("keep_rewards", options_.keep_rewards)
      .Bool("keep_dones", options_.keep_dones);
}

bool Select::Keeps(absl::string_view key) const {
  return IsAtOrBelowAny(key, options_.selected_keys) ||
         (options_.keep_rewards && IsReward(key)) ||
         (options_.keep_dones && IsFlag(key));
}

absl::Status Select::Forward(TensorDict* batch, TensorDict* /*state*/) const {
  for (const std::string& key : options_.selected_keys) {
    if (batch->Kind(key).has_value()) continue;
    RILL_RETURN_IF_ERROR(batch->Select({key}).status()) << "in Select";
  }
  return batch->DeleteIf([&](absl::string_view key, const TensorDict* dict) {
    return !Keeps(key) && (dict == nullptr || dict->empty());
  });
}

absl::StatusOr<TensorDictSpec> Select::ForwardSpec(
    const TensorDictSpec& spec) const {
  // A selected key has to be there, also where it is a dictionary.
  for (const std::string& key : options_.selected_keys) {
    RILL_RETURN_IF_ERROR(CheckHas("Select::ForwardSpec", key, spec));
  }
  return KeptPart(spec, [&](absl::string_view key) { return Keeps(key); });
}

absl::StatusOr<StepPlan> Select::PlanSteps(const TensorDictSpec& step) const {
  const std::vector<std::string> roots = RootsOf(options_.selected_keys);
  for (const std::string& key : options_.selected_keys) {
    RILL_RETURN_IF_ERROR(CheckHas("Select::PlanSteps", key, step));
  }
  // Steps keep what an environment cannot do without. A selected "next/x"
  // selects "x" too: the root of the next step is made of it.
  return StepPlan{.spec = KeptPart(step, [&](absl::string_view key) {
                    return IsFixedInSteps(key) ||
                           IsAtOrBelowAny(RootOf(key), roots) ||
                           IsAtOrBelowAny(key, options_.selected_keys);
                  })};
}

void Select::Extend(GatherPlan* plan) const {
  Drop(plan, [&](absl::string_view key) { return !Keeps(key); });
}

// --- Exclude -----------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Exclude>> Exclude::Create(Options options) {
  RILL_RETURN_IF_ERROR(
      CheckSomeKeys("Exclude::Create", "excluded_keys", options.excluded_keys));
  return absl::WrapUnique(new Exclude(std::move(options)));
}

OptionValues Exclude::option_values() const {
  return OptionValues()
      .Texts("excluded_keys", options_.excluded_keys)
      .Bool("inverse", options_.inverse);
}

bool Exclude::Drops(absl::string_view key) const {
  return IsAtOrBelowAny(key, options_.excluded_keys);
}

absl::Status Exclude::DropFrom(TensorDict* batch) const {
  for (const std::string& key : options_.excluded_keys) {
    if (!batch->Contains(key)) continue;
    RILL_RETURN_IF_ERROR(DeleteEntry(key, batch)) << "in Exclude";
  }
  return absl::OkStatus();
}

absl::Status Exclude::Forward(TensorDict* batch, TensorDict* /*state*/) const {
  return options_.inverse ? absl::OkStatus() : DropFrom(batch);
}

absl::Status Exclude::Inverse(TensorDict* batch, TensorDict* /*state*/) const {
  return options_.inverse ? DropFrom(batch) : absl::OkStatus();
}

TensorDictSpec Exclude::Rest(const TensorDictSpec& spec) const {
  return KeptPart(spec, [&](absl::string_view key) { return !Drops(key); });
}

absl::StatusOr<TensorDictSpec> Exclude::ForwardSpec(
    const TensorDictSpec& spec) const {
  return options_.inverse ? spec : Rest(spec);
}

absl::StatusOr<TensorDictSpec> Exclude::InverseSpec(
    const TensorDictSpec& spec) const {
  return options_.inverse ? Rest(spec) : spec;
}

absl::StatusOr<StepPlan> Exclude::PlanSteps(const TensorDictSpec& step) const {
  if (options_.inverse) return StepPlan{.spec = step};
  const std::vector<std::string> roots = RootsOf(options_.excluded_keys);
  // Beside an environment a key that is not there is more likely a mistake than
  // a choice.
  for (const std::string& key : options_.excluded_keys) {
    RILL_RETURN_IF_ERROR(CheckHas("Exclude::PlanSteps", key, step));
  }
  // A dictionary may be excluded that has a flag below it.
  for (const TensorDictSpec::Leaf& leaf : step.leaves()) {
    if (!IsFixedInSteps(leaf.key) ||
        (!Drops(leaf.key) && !IsAtOrBelowAny(RootOf(leaf.key), roots))) {
      continue;
    }
    return InvalidArgument(
        "Exclude::PlanSteps: excluded_keys: got \"", leaf.key,
        "\", which the steps of an environment keep; exclude it in a buffer");
  }
  return StepPlan{.spec = KeptPart(step, [&](absl::string_view key) {
                    return !IsAtOrBelowAny(RootOf(key), roots);
                  })};
}

void Exclude::Extend(GatherPlan* plan) const {
  if (options_.inverse) return;
  Drop(plan, [&](absl::string_view key) { return Drops(key); });
}

}  // namespace rill
