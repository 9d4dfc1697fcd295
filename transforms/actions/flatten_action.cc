// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/flatten_action.h"

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_specs.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

constexpr absl::string_view kCreate = "FlattenAction::Create";
constexpr absl::string_view kPlanSteps = "FlattenAction::PlanSteps";

// The dimensions [first, last] of a shape of this rank.
struct Dims {
  int first = 0;
  int last = 0;
};

// Negative dimensions count from the end of a shape of `rank`, which is that of
// the shape before the join on both sides.
absl::StatusOr<Dims> DimsOf(const FlattenAction::Options& options, int rank,
                            const LeafSpec& leaf) {
  const Dims dims = {
      .first = options.first_dim + (options.first_dim < 0 ? rank : 0),
      .last = options.last_dim + (options.last_dim < 0 ? rank : 0)};
  if (dims.first >= 0 && dims.first <= dims.last && dims.last < rank) {
    return dims;
  }
  return transforms_internal::Misfit(
      leaf,
      absl::StrCat("one with the dimensions first_dim = ", options.first_dim,
                   " to last_dim = ", options.last_dim));
}

// Rows are row-major, so dimensions side by side join without a move.
absl::StatusOr<LeafSpec> Reshaped(const LeafSpec& leaf,
                                  const std::vector<int64_t>& sizes) {
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  return leaf.Reshape(shape);
}

absl::StatusOr<LeafSpec> Flatten(const FlattenAction::Options& options,
                                 const LeafSpec& leaf) {
  RILL_ASSIGN_OR_RETURN(const Dims dims,
                        DimsOf(options, leaf.shape.rank(), leaf));
  std::vector<int64_t> sizes;
  int64_t joined = 1;
  // The joined size takes the place of the last of the joined dimensions.
  for (int d = 0; d < leaf.shape.rank(); ++d) {
    const bool is_joined = d >= dims.first && d <= dims.last;
    if (is_joined) joined *= leaf.shape[d];
    if (!is_joined) sizes.push_back(leaf.shape[d]);
    if (d == dims.last) sizes.push_back(joined);
  }
  return Reshaped(leaf, sizes);
}

absl::StatusOr<LeafSpec> Unflatten(const FlattenAction::Options& options,
                                   const LeafSpec& leaf) {
  const auto span = static_cast<int>(options.action_shape.size());
  // The flat shape has span - 1 dimensions less than the one that first_dim
  // and last_dim count in.
  RILL_ASSIGN_OR_RETURN(const Dims dims,
                        DimsOf(options, leaf.shape.rank() + span - 1, leaf));
  // Mixed signs make the number of joined dimensions depend on the rank.
  if (dims.last - dims.first + 1 != span) {
    return InvalidArgument("got action_shape of ", span, " dimensions, want ",
                           dims.last - dims.first + 1,
                           ", as first_dim and last_dim say");
  }
  const absl::Span<const int64_t> flat = leaf.shape.sizes();
  std::vector<int64_t> sizes(flat.begin(), flat.begin() + dims.first);
  sizes.insert(sizes.end(), options.action_shape.begin(),
               options.action_shape.end());
  sizes.insert(sizes.end(), flat.begin() + dims.first + 1, flat.end());
  return Reshaped(leaf, sizes);
}

}  // namespace

// The policy's action is the flat one, and both have the same bytes: the
// forward map, a copy, serves for the way back too.
FlattenAction::FlattenAction(const Options& options, const Rows& rows)
    : ActionTransform(rows, rows.map), options_(options) {}

OptionValues FlattenAction::option_values() const {
  return OptionValues()
      .Int("first_dim", options_.first_dim)
      .Int("last_dim", options_.last_dim)
      .Texts("in_keys", options_.in_keys)
      .Text("action_shape", absl::StrJoin(options_.action_shape, " "));
}

absl::StatusOr<StepPlan> FlattenAction::PlanSteps(
    const TensorDictSpec& step) const {
  // Beside an environment, in_keys without the action have no meaning.
  if (!absl::c_linear_search(options_.in_keys, "action")) {
    return StepPlan{.spec = step};
  }
  RILL_ASSIGN_OR_RETURN(const LeafSpec inner, transforms_internal::FindSpec(
                                                  kPlanSteps, "action", step));
  absl::StatusOr<LeafSpec> outer = rows().map->MapSpec(inner);
  if (!outer.ok()) {
    return absl::Status(
        outer.status().code(),
        absl::StrCat(kPlanSteps, ": \"action\": ", outer.status().message()));
  }
  return transforms_internal::PlanAction(step, inner, *outer);
}

absl::Status FlattenAction::OnDeviceAction(const Call& call, Tensors leaves,
                                           TensorDict* /*state*/) const {
  if (leaves.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const Tensor to, leaves[1].ViewAs(leaves[0].shape()));
  return to.CopyFromAsync(leaves[0], call.stream);
}

// RowwiseTransform would map leaves of the root; this one maps actions only.
absl::StatusOr<std::unique_ptr<FlattenAction>> FlattenAction::Create(
    const Options& options) {
  // With different signs the order depends on the rank; MapSpec checks it.
  const bool is_same_side = (options.first_dim < 0) == (options.last_dim < 0);
  if (is_same_side && options.first_dim > options.last_dim) {
    return InvalidArgument(kCreate, ": first_dim, last_dim: got ",
                           options.first_dim, ", ", options.last_dim,
                           ", want first_dim <= last_dim");
  }
  for (const int64_t size : options.action_shape) {
    if (size >= 0) continue;
    return InvalidArgument(kCreate, ": action_shape: got ", size,
                           ", want sizes >= 0");
  }
  Rows rows = {.map = MakeReshape([options](const LeafSpec& leaf) {
                 return Flatten(options, leaf);
               }),
               .in_keys = options.in_keys};
  if (!options.action_shape.empty()) {
    rows.inverse = MakeReshape(
        [options](const LeafSpec& leaf) { return Unflatten(options, leaf); });
    rows.in_keys_inv = options.in_keys;
  }
  RILL_RETURN_IF_ERROR(CheckRows(kCreate, rows));
  return absl::WrapUnique(new FlattenAction(options, rows));
}

}  // namespace rill
