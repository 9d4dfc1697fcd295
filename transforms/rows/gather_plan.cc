// SPDX-License-Identifier: Apache-2.0
// A plan is extended transform by transform, side by side with the spec. So
// each transform sees what the rows are before it. One that cannot say what it
// does to rows ends the attempt, and the buffer then gathers first and
// transforms after that.
#include "rill/transforms/rows/gather_plan.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/compose.h"

namespace rill {
namespace {

// Extends `plan` and `spec` by `transforms`, a chain at `outer`. False where
// one of them cannot be part of a gather; both are then useless.
absl::StatusOr<bool> ExtendAll(
    absl::Span<const std::unique_ptr<BatchTransform>> transforms,
    absl::string_view outer, TensorDictSpec* spec, GatherPlan* plan) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    const std::unique_ptr<BatchTransform>& transform = transforms[i];
    const std::string place = absl::StrCat(
        "transform ", i, " (", transform->name(), ") of Compose", outer);
    // A chain inside a chain is flattened: its transforms are links by
    // themselves.
    if (const auto* chain = dynamic_cast<const Compose*>(transform.get())) {
      RILL_ASSIGN_OR_RETURN(
          const bool is_part,
          ExtendAll(chain->transforms(), absl::StrCat("; in ", place), spec,
                    plan));
      if (!is_part) return false;
      continue;
    }
    const auto* link = dynamic_cast<const GatherLink*>(transform.get());
    // A state depends on the order of batches, and a gather runs in any order.
    if (link == nullptr || transform->is_stateful()) return false;
    // Before ForwardSpec: Extend wants the leaves as this transform finds them.
    for (GatherPlan::Leaf& leaf : plan->leaves) {
      leaf.spec = *spec->Find(leaf.key);
    }
    RILL_ASSIGN_OR_RETURN(*spec, transform->ForwardSpec(*spec));
    link->Extend(plan);
    // Maps that were there before keep their places.
    for (GatherPlan::Leaf& leaf : plan->leaves) {
      leaf.places.resize(leaf.maps.size(), place);
    }
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
                        ExtendAll(transforms, "", &spec, &plan));
  if (!is_part) return std::nullopt;
  // The sample's own leaves (`added`) are not rows of the storage, so no map
  // can be applied to them on the way. A plan has them unchanged or is none.
  std::vector<GatherPlan::Leaf> leaves;
  for (GatherPlan::Leaf& leaf : plan.leaves) {
    if (absl::c_linear_search(added, leaf.from)) {
      if (leaf.key != leaf.from || !leaf.maps.empty()) return std::nullopt;
    // A stored leaf would replace an added one.
    } else if (absl::c_linear_search(added, leaf.key)) {
      return std::nullopt;
    } else {
      leaves.push_back(std::move(leaf));
    }
  }
  return GatherPlan{.leaves = std::move(leaves)};
}

}  // namespace rill
