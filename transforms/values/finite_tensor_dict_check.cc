// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/finite_tensor_dict_check.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kName = "FiniteTensorDictCheck";
// Stands between the root's leaves and those below next. The calls see no keys:
// they know it by its dtype, which no leaf of floating point has.
constexpr absl::string_view kBoundary = "next/done";

bool IsChecked(DType dtype) {
  return IsFloatingPoint(dtype) || dtype == DType::kComplex64 ||
         dtype == DType::kComplex128;
}

// The dtypes and shapes of leaves, planned or bound, as a text.
template <typename Leaf>
std::string LayoutOf(absl::Span<const Leaf> leaves) {
  std::string layout;
  for (const Leaf& leaf : leaves) {
    absl::StrAppend(&layout, DTypeName(leaf.dtype), leaf.shape.ToString());
  }
  return layout;
}

// The places of the root's leaves: up to the boundary.
size_t CountRoots(absl::Span<const BoundLeaf> leaves) {
  size_t end = 0;
  while (leaves[end].dtype != DType::kBool) ++end;
  return end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FiniteTensorDictCheck>>
FiniteTensorDictCheck::Create() {
  return std::make_unique<FiniteTensorDictCheck>();
}

absl::Status FiniteTensorDictCheck::Forward(TensorDict* batch,
                                            TensorDict* /*state*/) const {
  absl::Status status;
  batch->ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!status.ok() || leaf.is_host() || !IsChecked(leaf.dtype())) return;
    status = transforms_internal::OnDevice(kName, key, leaf.device());
  });
  RILL_RETURN_IF_ERROR(status);
  return CheckFinite(kName, *batch);
}

absl::StatusOr<TensorDictSpec> FiniteTensorDictCheck::ForwardSpec(
    const TensorDictSpec& spec) const {
  for (const auto& [key, leaf] : spec.leaves()) {
    if (!IsChecked(leaf.dtype)) continue;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOnHost(
        "FiniteTensorDictCheck::ForwardSpec", key, spec));
  }
  return spec;
}

absl::StatusOr<StepPlan> FiniteTensorDictCheck::PlanSteps(
    const TensorDictSpec& step) const {
  // The flag marks the boundary, so steps have to have it.
  StepPlan plan = {.spec = step};
  const auto add = [&](bool is_next) {
    for (const auto& [key, leaf] : step.leaves()) {
      if (!IsChecked(leaf.dtype) || key == "action" ||
          absl::StartsWith(key, "next/") != is_next) {
        continue;
      }
      transforms_internal::AddLeaf(key, leaf, LeafUse::kRead, &plan);
    }
  };
  add(/*is_next=*/false);
  RILL_RETURN_IF_ERROR(transforms_internal::AddFlag(
      "FiniteTensorDictCheck::PlanSteps", kBoundary, LeafUse::kRead, &plan));
  add(/*is_next=*/true);
  absl::MutexLock lock(&mutex_);
  std::vector<std::set<std::string>>& keys =
      keys_[LayoutOf(absl::MakeConstSpan(plan.leaves))];
  keys.resize(plan.leaves.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i].insert(plan.leaves[i].key);
  return plan;
}

absl::Status FiniteTensorDictCheck::CheckRows(Leaves leaves, size_t place,
                                              int64_t first,
                                              int64_t rows) const {
  const BoundLeaf& leaf = leaves[place];
  const int64_t width = leaf.shape.num_elements();
  const int64_t found =
      FirstNotFinite(leaf.dtype, leaf.data + first * leaf.width, rows * width);
  if (found == rows * width) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  std::vector<std::set<std::string>>& keys = keys_[LayoutOf(leaves)];
  keys.resize(leaves.size());
  // An equal transform may have made the plan.
  if (keys[place].empty()) keys[place] = {absl::StrCat("leaf ", place)};
  return NotFinite(kName, absl::StrJoin(keys[place], "\" or \""),
                   first * width + found,
                   Shape({leaf.rows}).Concat(leaf.shape));
}

absl::Status FiniteTensorDictCheck::OnReset(absl::Span<const uint8_t> mask,
                                            Leaves leaves,
                                            TensorDict* /*state*/) const {
  for (size_t i = 0; i < CountRoots(leaves); ++i) {
    // Lanes that were not reset were checked by their step.
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      RILL_RETURN_IF_ERROR(CheckRows(leaves, i, static_cast<int64_t>(lane), 1));
    }
  }
  return absl::OkStatus();
}

absl::Status FiniteTensorDictCheck::OnStep(Leaves leaves,
                                           TensorDict* /*state*/) const {
  for (size_t i = CountRoots(leaves) + 1; i < leaves.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckRows(leaves, i, 0, leaves[i].rows));
  }
  return absl::OkStatus();
}

}  // namespace rill
