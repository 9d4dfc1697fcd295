// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/gather_plan.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/compose.h"

namespace rill {
namespace {

// Goes on from `plan` and `spec`; false where a transform cannot be part of a
// gather.
absl::StatusOr<bool> ExtendAll(
    absl::Span<const std::unique_ptr<BatchTransform>> transforms,
    TensorDictSpec* spec, GatherPlan* plan) {
  for (const std::unique_ptr<BatchTransform>& transform : transforms) {
    if (const auto* chain = dynamic_cast<const Compose*>(transform.get())) {
      RILL_ASSIGN_OR_RETURN(const bool is_part,
                            ExtendAll(chain->transforms(), spec, plan));
      if (!is_part) return false;
      continue;
    }
    const auto* link = dynamic_cast<const GatherLink*>(transform.get());
    if (link == nullptr || transform->is_stateful()) return false;
    for (GatherPlan::Leaf& leaf : plan->leaves) {
      leaf.spec = *spec->Find(leaf.key);
    }
    RILL_ASSIGN_OR_RETURN(*spec, transform->ForwardSpec(*spec));
    link->Extend(plan);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::optional<GatherPlan>> PlanGather(
    absl::Span<const std::unique_ptr<BatchTransform>> transforms,
    const TensorDictSpec& sample, absl::Span<const std::string> added) {
  GatherPlan plan;
  for (const TensorDictSpec::Leaf& leaf : sample.leaves()) {
    plan.leaves.push_back({.key = leaf.key, .from = leaf.key});
  }
  TensorDictSpec spec = sample;
  RILL_ASSIGN_OR_RETURN(const bool is_part,
                        ExtendAll(transforms, &spec, &plan));
  if (!is_part) return std::nullopt;
  std::vector<GatherPlan::Leaf> leaves;
  for (GatherPlan::Leaf& leaf : plan.leaves) {
    if (absl::c_linear_search(added, leaf.from)) {
      if (leaf.key != leaf.from || !leaf.maps.empty()) return std::nullopt;
    } else if (absl::c_linear_search(added, leaf.key)) {
      return std::nullopt;
    } else {
      leaves.push_back(std::move(leaf));
    }
  }
  return GatherPlan{.leaves = std::move(leaves)};
}

}  // namespace rill
