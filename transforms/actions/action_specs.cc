// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_specs.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"

namespace rill::transforms_internal {
namespace {

constexpr absl::string_view kAction = "action";

// Element i as double, of any dtype with arithmetic. Options are far below
// 2^53, so int64 is exact.
double NumberAt(DType dtype, const std::byte* elements, int64_t i) {
  double number = 0;
  CastElements(dtype, DType::kFloat64, elements + i * DTypeSize(dtype),
               reinterpret_cast<std::byte*>(&number), 1);
  return number;
}

// The elements of `tensor`, or `number` for each where there is none.
std::vector<double> NumbersOf(const Tensor* tensor, double number,
                              int64_t count) {
  if (tensor == nullptr) {
    return std::vector<double>(static_cast<size_t>(count), number);
  }
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(NumberAt(tensor->dtype(), tensor->raw_data(), i));
  }
  return numbers;
}

}  // namespace

absl::StatusOr<StepPlan> PlanAction(const TensorDictSpec& step,
                                    const LeafSpec& inner,
                                    const LeafSpec& outer) {
  StepPlan plan = {.spec = step};
  RILL_RETURN_IF_ERROR(plan.spec.Set(kAction, outer));
  AddLeaf(kAction, outer, LeafUse::kRead, &plan);
  AddLeaf(kAction, inner, LeafUse::kWrite, &plan);
  return plan;
}

absl::Status ActionTransform::OnReset(absl::Span<const uint8_t> /*mask*/,
                                      Leaves /*leaves*/,
                                      TensorDict* /*state*/) const {
  return absl::OkStatus();
}

absl::Status ActionTransform::OnAction(Leaves leaves,
                                       TensorDict* /*state*/) const {
  if (leaves.empty()) return absl::OkStatus();
  return map_->MapRows(leaves[0].dtype, leaves[0].shape, leaves[0].rows,
                       leaves[0].data, leaves[1].data);
}

absl::Status ActionTransform::OnStep(Leaves /*leaves*/,
                                     TensorDict* /*state*/) const {
  return absl::OkStatus();
}

absl::Status ActionTransform::OnDeviceReset(const Call& /*call*/,
                                            Tensors /*leaves*/,
                                            TensorDict* /*state*/) const {
  return absl::OkStatus();
}

absl::Status ActionTransform::OnDeviceAction(const Call& call, Tensors leaves,
                                             TensorDict* /*state*/) const {
  if (leaves.empty()) return absl::OkStatus();
  return MapStepPairs(*map_, call, {{leaves[0], leaves[1]}});
}

absl::Status ActionTransform::OnDeviceStep(const Call& /*call*/,
                                           Tensors /*leaves*/,
                                           TensorDict* /*state*/) const {
  return absl::OkStatus();
}

// The whole spec is compared, domain included: numbers that were made for other
// bounds would be silently wrong.
absl::Status CheckAction(absl::string_view caller, const TensorDictSpec& step,
                         const LeafSpec& want) {
  RILL_ASSIGN_OR_RETURN(const LeafSpec got, FindSpec(caller, kAction, step));
  if (got == want) return absl::OkStatus();
  return Misfit(caller, kAction, got,
                absl::StrCat(want.ToString(),
                             "; make the transform with the action_spec() of "
                             "what comes before it"));
}

// Scalars where all elements share bounds, else the tables.
ElementBounds BoundsOf(const LeafSpec& spec) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int64_t count = spec.shape.num_elements();
  const bool is_bounded = spec.domain == LeafSpec::Domain::kBounded;
  return {
      .low = NumbersOf(spec.lows(), is_bounded ? spec.low : -kInfinity, count),
      .high =
          NumbersOf(spec.highs(), is_bounded ? spec.high : kInfinity, count)};
}

absl::StatusOr<ElementBounds> FiniteBounds(absl::string_view caller,
                                           const LeafSpec& spec) {
  if (spec.domain != LeafSpec::Domain::kBounded || !IsFloat32Or64(spec.dtype)) {
    return InvalidArgument(caller, ": spec: got ", spec.ToString(),
                           ", want float32 or float64 with bounds");
  }
  RILL_RETURN_IF_ERROR(spec.CheckDomain()) << caller << ": spec";
  ElementBounds bounds = BoundsOf(spec);
  for (size_t i = 0; i < bounds.low.size(); ++i) {
    if (std::isfinite(bounds.low[i]) && std::isfinite(bounds.high[i])) continue;
    return InvalidArgument(caller, ": spec: element ", i, ": got bounds ",
                           bounds.low[i], ", ", bounds.high[i],
                           ", want finite ones");
  }
  return bounds;
}

// Any dtype is read as double, so a fraction or NaN is no option.
int64_t ChoiceRows::Read(const std::byte* row, int64_t choice) const {
  if (!is_one_hot) {
    const double index = NumberAt(dtype, row, choice);
    // The comparisons are false for NaN.
    const bool is_option = index >= 0 && index < static_cast<double>(options) &&
                           index == std::floor(index);
    return is_option ? static_cast<int64_t>(index) : -1;
  }
  // Each element is looked at: two that are not 0 are no choice.
  int64_t found = -1;
  for (int64_t option = 0; option < options; ++option) {
    if (NumberAt(dtype, row, choice * options + option) == 0) continue;
    if (found >= 0) return -1;
    found = option;
  }
  return found;
}

void ChoiceRows::Write(int64_t choice, int64_t option, std::byte* row) const {
  const int64_t size = DTypeSize(dtype);
  // Cast from int64, so that bool and floats get their own 0 and 1.
  const auto write = [&](int64_t element, int64_t number) {
    CastElements(DType::kInt64, dtype,
                 reinterpret_cast<const std::byte*>(&number),
                 row + element * size, 1);
  };
  if (!is_one_hot) return write(choice, option);
  for (int64_t i = 0; i < options; ++i) {
    write(choice * options + i, i == option ? 1 : 0);
  }
}

ChoiceLeaf ChoicesOf(const Tensor& leaf, bool is_one_hot) {
  return {.data = leaf.raw_data(),
          .type = static_cast<ElementType>(leaf.dtype()),
          .is_one_hot = is_one_hot,
          .row = leaf.num_elements() / leaf.shape()[0],
          .bytes = leaf.size_bytes()};
}

absl::Status WrongChoice(absl::string_view caller, int64_t fault) {
  return InvalidArgument(caller, ": action of lane ", fault - 1,
                         " in the last step: got no single option that is "
                         "legal, want one for each choice");
}

}  // namespace rill::transforms_internal
