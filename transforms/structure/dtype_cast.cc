// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/dtype_cast.h"

#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;

// From one dtype to another. The specs of leaves of other dtypes are refused or
// stay; their rows are not mapped.
class CastFrom final : public RowMap {
 public:
  CastFrom(DType from, std::shared_ptr<const RowMap> cast, bool keeps_others)
      : from_(from), cast_(std::move(cast)), keeps_others_(keeps_others) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (leaf.dtype == from_) return cast_->MapSpec(leaf);
    if (keeps_others_) return leaf;
    return transforms_internal::Misfit(
        leaf, absl::StrCat("dtype ", DTypeName(from_)));
  }

  // Only leaves of dtype `from_` get here: the callers leave the others alone.
  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    return cast_->MapRows(dtype, shape, count, from, to);
  }

  absl::Span<const RowStep> steps() const override { return cast_->steps(); }

 private:
  const DType from_;
  const std::shared_ptr<const RowMap> cast_;
  const bool keeps_others_;
};

absl::StatusOr<std::shared_ptr<const RowMap>> MakeCast(DType from, DType to,
                                                       bool keeps_others) {
  RILL_ASSIGN_OR_RETURN(
      auto cast, MakeRowStep({.kind = RowStep::Kind::kCast, .dtype = to}));
  return std::make_shared<CastFrom>(from, std::move(cast), keeps_others);
}

absl::StatusOr<TensorDictSpec> MapAll(const RowMap& map,
                                      const TensorDictSpec& spec) {
  return spec.MapLeaves([&](absl::string_view, const LeafSpec& leaf) {
    return map.MapSpec(leaf);
  });
}

// Rows [first, first + lanes) from one leaf of steps to another.
void CastLanes(const BoundLeaf& from, const BoundLeaf& to, int64_t first,
               int64_t lanes) {
  CastElements(from.dtype, to.dtype, from.data + first * from.width,
               to.data + first * to.width, lanes * from.shape.num_elements());
}

// A plan of all leaves is made of pairs (read, written): those of the root,
// then one bool, those below next, the action. The calls see dtypes and no
// keys; the bool, which no pair has, tells where the root ends.
constexpr absl::string_view kBoundary = "next/done";

DType DTypeOfLeaf(const BoundLeaf& leaf) { return leaf.dtype; }
DType DTypeOfLeaf(const Tensor& leaf) { return leaf.dtype(); }

// The places of the root's pairs: up to the boundary, which is no dtype_in.
template <typename Leaf>
size_t CountRoots(absl::Span<const Leaf> leaves, DType dtype_in) {
  size_t end = 0;
  while (DTypeOfLeaf(leaves[end]) == dtype_in) end += 2;
  return end;
}

// Behind the pairs below next: the place of the action's pair, if there is one.
// That one begins with the other dtype.
template <typename Leaf>
size_t EndOfNext(absl::Span<const Leaf> leaves, DType dtype_in) {
  size_t end = CountRoots(leaves, dtype_in) + 1;
  while (end < leaves.size() && DTypeOfLeaf(leaves[end]) == dtype_in) end += 2;
  return end;
}

void AddPair(absl::string_view key, const Shape& shape, DType read,
             DType written, StepPlan* plan) {
  AddLeaf(key, LeafSpec::Unbounded(read, shape), LeafUse::kRead, plan);
  AddLeaf(key, LeafSpec::Unbounded(written, shape), LeafUse::kWrite, plan);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DTypeCast>> DTypeCast::Create(
    const Options& options) {
  return CreateNamed("DTypeCast", options);
}

absl::StatusOr<std::unique_ptr<DTypeCast>> DTypeCast::CreateNamed(
    absl::string_view name, const Options& options) {
  const std::string caller = absl::StrCat(name, "::Create");
  if (options.dtype_in == options.dtype_out) {
    return InvalidArgument(caller, ": dtype_in and dtype_out: got ",
                           DTypeName(options.dtype_in),
                           " twice, want two dtypes");
  }
  const bool all = options.in_keys.empty() && options.in_keys_inv.empty();
  if (all && !options.out_keys.empty()) {
    return InvalidArgument(caller, ": out_keys: got ", options.out_keys.size(),
                           " keys, want none where there are no in_keys");
  }
  // A cast of bool would change the flags, and the boundary of a plan with
  // them.
  if (all &&
      (options.dtype_in == DType::kBool || options.dtype_out == DType::kBool)) {
    return InvalidArgument(caller,
                           ": in_keys: got none, want the keys that are cast "
                           "where a dtype is bool: flags stay bool");
  }
  RILL_ASSIGN_OR_RETURN(auto map,
                        MakeCast(options.dtype_in, options.dtype_out, all));
  RILL_ASSIGN_OR_RETURN(auto inverse,
                        MakeCast(options.dtype_out, options.dtype_in, all));
  Rows rows = {.map = std::move(map),
               .in_keys = options.in_keys,
               .out_keys = options.out_keys,
               .inverse = std::move(inverse),
               .in_keys_inv = options.in_keys_inv};
  // In that form the lists of keys are empty, which CheckRows refuses.
  if (!all) {
    RILL_RETURN_IF_ERROR(CheckRows(caller, rows));
  }
  return absl::WrapUnique(new DTypeCast(name, options, std::move(rows)));
}

absl::StatusOr<std::unique_ptr<DTypeCast>> DoubleToFloat::Create(
    const Options& options) {
  return DTypeCast::CreateNamed("DoubleToFloat",
                                {.dtype_in = DType::kFloat64,
                                 .dtype_out = DType::kFloat32,
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys,
                                 .in_keys_inv = options.in_keys_inv});
}

DTypeCast::DTypeCast(absl::string_view name, const Options& options, Rows rows)
    : RowwiseTransform(std::move(rows), name,
                       OptionValues()
                           .Choice("dtype_in", DTypeName(options.dtype_in))
                           .Choice("dtype_out", DTypeName(options.dtype_out))),
      dtype_in_(options.dtype_in),
      dtype_out_(options.dtype_out) {}

// --- All leaves --------------------------------------------------------------

absl::Status DTypeCast::CastAll(const RowMap& map, DType from,
                                TensorDict* batch) const {
  return MapLeaves(
      map, "", "",
      [from](absl::string_view, const Tensor& leaf) {
        return leaf.dtype() == from;
      },
      batch);
}

absl::Status DTypeCast::Forward(TensorDict* batch, TensorDict* state) const {
  if (casts_all()) return CastAll(*rows().map, dtype_in_, batch);
  return RowwiseTransform::Forward(batch, state);
}

absl::Status DTypeCast::Inverse(TensorDict* batch, TensorDict* state) const {
  if (casts_all()) return CastAll(*rows().inverse, dtype_out_, batch);
  return RowwiseTransform::Inverse(batch, state);
}

absl::StatusOr<TensorDictSpec> DTypeCast::ForwardSpec(
    const TensorDictSpec& spec) const {
  if (casts_all()) {
    return MapAll(*rows().map, spec);
  }
  return RowwiseTransform::ForwardSpec(spec);
}

absl::StatusOr<TensorDictSpec> DTypeCast::InverseSpec(
    const TensorDictSpec& spec) const {
  if (casts_all()) {
    return MapAll(*rows().inverse, spec);
  }
  return RowwiseTransform::InverseSpec(spec);
}

void DTypeCast::Extend(GatherPlan* plan) const {
  if (!casts_all()) return RowwiseTransform::Extend(plan);
  for (GatherPlan::Leaf& leaf : plan->leaves) {
    if (leaf.spec.dtype == dtype_in_) leaf.maps.push_back(rows().map);
  }
}

absl::StatusOr<StepPlan> DTypeCast::PlanSteps(
    const TensorDictSpec& step) const {
  if (!casts_all()) return RowwiseTransform::PlanSteps(step);
  const std::string caller = absl::StrCat(name(), "::PlanSteps");
  for (const auto& [key, leaf] : step.leaves()) {
    if (leaf.dtype != dtype_in_) continue;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOnHost(caller, key, step));
  }
  StepPlan plan;
  RILL_ASSIGN_OR_RETURN(plan.spec, MapAll(*rows().map, step));
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckIsFlag(caller, kBoundary, step));
  const auto add_pairs = [&](bool is_next) {
    for (const auto& [key, leaf] : step.leaves()) {
      if (leaf.dtype != dtype_in_ || key == "action" ||
          absl::StartsWith(key, "next/") != is_next) {
        continue;
      }
      AddPair(key, leaf.shape, dtype_in_, dtype_out_, &plan);
    }
  };
  add_pairs(/*is_next=*/false);
  AddLeaf(kBoundary, LeafSpec::Binary({1}), LeafUse::kRead, &plan);
  add_pairs(/*is_next=*/true);
  const LeafSpec* const action = step.Find("action");
  // The action goes the other way: the policy's is of dtype_out. Its pair comes
  // last.
  if (action != nullptr && action->dtype == dtype_in_) {
    AddPair("action", action->shape, dtype_out_, dtype_in_, &plan);
  }
  return plan;
}

absl::Status DTypeCast::OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                                TensorDict* state) const {
  if (!casts_all()) return RowwiseTransform::OnReset(mask, leaves, state);
  const size_t roots = CountRoots(leaves, dtype_in_);
  for (size_t i = 0; i < roots; i += 2) {
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      CastLanes(leaves[i], leaves[i + 1], static_cast<int64_t>(lane), 1);
    }
  }
  return absl::OkStatus();
}

absl::Status DTypeCast::OnStep(Leaves leaves, TensorDict* state) const {
  if (!casts_all()) return RowwiseTransform::OnStep(leaves, state);
  const size_t end = EndOfNext(leaves, dtype_in_);
  for (size_t i = CountRoots(leaves, dtype_in_) + 1; i < end; i += 2) {
    CastLanes(leaves[i], leaves[i + 1], 0, leaves[i].rows);
  }
  return absl::OkStatus();
}

absl::Status DTypeCast::OnAction(Leaves leaves, TensorDict* state) const {
  if (!casts_all()) return RowwiseTransform::OnAction(leaves, state);
  const size_t action = EndOfNext(leaves, dtype_in_);
  if (action < leaves.size()) {
    CastLanes(leaves[action], leaves[action + 1], 0, leaves[action].rows);
  }
  return absl::OkStatus();
}

// --- All leaves of steps on a device -----------------------------------------

absl::Status DTypeCast::OnDeviceReset(const Call& call, Tensors leaves,
                                      TensorDict* state) const {
  if (!casts_all()) {
    return RowwiseTransform::OnDeviceReset(call, leaves, state);
  }
  StepPairs pairs;
  const size_t roots = CountRoots(leaves, dtype_in_);
  for (size_t i = 0; i < roots; i += 2) {
    pairs.emplace_back(leaves[i], leaves[i + 1]);
  }
  return MapStepPairs(*rows().map, call, pairs);
}

absl::Status DTypeCast::OnDeviceStep(const Call& call, Tensors leaves,
                                     TensorDict* state) const {
  if (!casts_all()) {
    return RowwiseTransform::OnDeviceStep(call, leaves, state);
  }
  StepPairs pairs;
  const size_t end = EndOfNext(leaves, dtype_in_);
  for (size_t i = CountRoots(leaves, dtype_in_) + 1; i < end; i += 2) {
    pairs.emplace_back(leaves[i], leaves[i + 1]);
  }
  return MapStepPairs(*rows().map, call, pairs);
}

absl::Status DTypeCast::OnDeviceAction(const Call& call, Tensors leaves,
                                       TensorDict* state) const {
  if (!casts_all()) {
    return RowwiseTransform::OnDeviceAction(call, leaves, state);
  }
  const size_t action = EndOfNext(leaves, dtype_in_);
  if (action == leaves.size()) return absl::OkStatus();
  return MapStepPairs(*rows().inverse, call,
                      {{leaves[action], leaves[action + 1]}});
}

}  // namespace rill
