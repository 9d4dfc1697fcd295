// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_specs.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

using transforms_internal::BoundsOf;
using transforms_internal::ElementBounds;
using transforms_internal::IsFloat32Or64;
using transforms_internal::Misfit;

constexpr absl::string_view kCreate = "ActionScaling::Create";
constexpr absl::string_view kPlanSteps = "ActionScaling::PlanSteps";

// The map to the environment's action: x * scale + loc. A list of one number is
// for all elements.
struct Numbers {
  std::vector<double> loc;
  std::vector<double> scale;

  double Loc(size_t i) const { return loc[loc.size() == 1 ? 0 : i]; }
  double Scale(size_t i) const { return scale[scale.size() == 1 ? 0 : i]; }
  size_t size() const { return std::max(loc.size(), scale.size()); }
};

// To the environment's action, inside its bounds where they are known. It is no
// RowStep of kScaleThenShift, which rounds numbers to float32 and does not
// clamp.
class Unscale final : public RowMap {
 public:
  Unscale(Numbers numbers, std::optional<LeafSpec> spec)
      : numbers_(std::move(numbers)), spec_(std::move(spec)) {
    if (spec_.has_value()) bounds_ = BoundsOf(*spec_);
  }
  bool is_in_place() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (!IsFloat32Or64(leaf.dtype)) return Misfit(leaf, "float32 or float64");
    // The layout has to be the spec's: bounds are taken element by element.
    if (spec_.has_value()) {
      if (leaf.dtype == spec_->dtype && leaf.shape == spec_->shape) {
        return *spec_;
      }
      return Misfit(leaf, absl::StrCat("the layout of ", spec_->ToString()));
    }
    const size_t n = numbers_.size();
    if (n == 1 || leaf.shape.num_elements() == static_cast<int64_t>(n)) {
      return LeafSpec::Unbounded(leaf.dtype, leaf.shape);
    }
    return Misfit(leaf, absl::StrCat("one element for each of ", n,
                                     " numbers of loc and scale"));
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    if (dtype == DType::kFloat32) {
      Map<float>(shape.num_elements(), count, from, to);
    } else {
      Map<double>(shape.num_elements(), count, from, to);
    }
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    RILL_RETURN_IF_ERROR(rows->ScaleInDouble(numbers_.scale, numbers_.loc));
    if (!spec_.has_value() || bounds_.low.empty()) return absl::OkStatus();
    return rows->Clip(bounds_.low, bounds_.high);
  }

 private:
  // In double, rounded once to T, then clamped to bounds that are rounded to T.
  template <typename T>
  void Map(int64_t width, int64_t count, const std::byte* from,
           std::byte* to) const {
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (int64_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
        T value = static_cast<T>(*in++ * numbers_.Scale(i) + numbers_.Loc(i));
        if (spec_.has_value()) {
          const T low = static_cast<T>(bounds_.low[i]);
          const T high = static_cast<T>(bounds_.high[i]);
          // The comparisons are false for NaN, which stays.
          value = value < low ? low : value > high ? high : value;
        }
        *out++ = value;
      }
    }
  }

  const Numbers numbers_;
  const std::optional<LeafSpec> spec_;
  ElementBounds bounds_;
};

// The middle and half of the distance of each element's bounds. Halves are
// taken before the sum and the difference, which could overflow.
absl::StatusOr<Numbers> NumbersOfSpec(const LeafSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const ElementBounds bounds,
                        transforms_internal::FiniteBounds(kCreate, spec));
  Numbers numbers;
  for (size_t i = 0; i < bounds.low.size(); ++i) {
    numbers.loc.push_back(bounds.low[i] / 2 + bounds.high[i] / 2);
    numbers.scale.push_back(bounds.high[i] / 2 - bounds.low[i] / 2);
    // The map after reads divides by the scale as float32.
    const auto scale = static_cast<float>(numbers.scale.back());
    if (std::isfinite(scale) && scale > 0) continue;
    return InvalidArgument(
        kCreate, ": spec: element ", i, ": got bounds ", bounds.low[i], ", ",
        bounds.high[i],
        ", want low < high and a float32 between them, or loc and "
        "scale as options");
  }
  if (!numbers.loc.empty()) return numbers;
  return InvalidArgument(kCreate, ": spec: got ", spec.ToString(),
                         ", want an element or more");
}

absl::Status CheckNumbers(const ActionScaling::Options& options) {
  if (options.loc.empty() != options.scale.empty() ||
      (options.loc.empty() && !options.spec.has_value())) {
    return InvalidArgument(kCreate, ": spec, loc, scale: got ",
                           options.spec.has_value() ? "a" : "no", " spec, ",
                           options.loc.size(), " and ", options.scale.size(),
                           " numbers, want a spec, or both loc and scale");
  }
  for (size_t i = 0; i < options.loc.size(); ++i) {
    if (std::isfinite(static_cast<float>(options.loc[i]))) continue;
    return InvalidArgument(kCreate, ": loc: element ", i, ": got ",
                           options.loc[i], ", want a finite float32");
  }
  for (size_t i = 0; i < options.scale.size(); ++i) {
    const float scale = static_cast<float>(options.scale[i]);
    if (std::isfinite(scale) && scale != 0) continue;
    return InvalidArgument(kCreate, ": scale: element ", i, ": got ",
                           options.scale[i],
                           ", want a finite float32 other than 0");
  }
  return absl::OkStatus();
}

// The policy's action. Exactly [-1, 1] or [0, 1] where the bounds give the
// numbers: computing them would round. Else the bounds go backwards through the
// map.
absl::StatusOr<LeafSpec> OuterSpec(const ActionScaling::Options& options,
                                   const Numbers& numbers) {
  const LeafSpec& spec = *options.spec;
  if (options.loc.empty()) {
    return LeafSpec::Bounded(spec.dtype, spec.shape,
                             options.standard_normal ? -1 : 0, 1);
  }
  const auto elements = static_cast<size_t>(spec.shape.num_elements());
  if (numbers.size() != 1 && numbers.size() != elements) {
    return InvalidArgument(kCreate, ": loc, scale: got ", numbers.size(),
                           " numbers, want 1 or ", elements,
                           ", one for each element of ", spec.ToString());
  }
  if (spec.domain != LeafSpec::Domain::kBounded) {
    return LeafSpec::Unbounded(spec.dtype, spec.shape);
  }
  // A negative scale swaps the ends.
  ElementBounds bounds = BoundsOf(spec);
  for (size_t i = 0; i < elements; ++i) {
    const double a = (bounds.low[i] - numbers.Loc(i)) / numbers.Scale(i);
    const double b = (bounds.high[i] - numbers.Loc(i)) / numbers.Scale(i);
    bounds.low[i] = std::min(a, b);
    bounds.high[i] = std::max(a, b);
  }
  RILL_ASSIGN_OR_RETURN(Tensor low,
                        Tensor::From<double>(bounds.low, spec.shape));
  RILL_ASSIGN_OR_RETURN(low, Cast(low, spec.dtype));
  RILL_ASSIGN_OR_RETURN(Tensor high,
                        Tensor::From<double>(bounds.high, spec.shape));
  RILL_ASSIGN_OR_RETURN(high, Cast(high, spec.dtype));
  return LeafSpec::Bounded(low, high);
}

}  // namespace

ActionScaling::ActionScaling(const Options& options,
                             std::optional<LeafSpec> outer, const Rows& rows)
    : ActionTransform(rows, rows.inverse),
      options_(options),
      outer_(std::move(outer)) {}

OptionValues ActionScaling::option_values() const {
  OptionValues values;
  if (options_.spec.has_value()) {
    values.Text("spec", options_.spec->ToString());
  } else {
    values.None("spec");
  }
  return values.Text("loc", absl::StrJoin(options_.loc, " "))
      .Text("scale", absl::StrJoin(options_.scale, " "))
      .Bool("standard_normal", options_.standard_normal)
      .Texts("in_keys", options_.in_keys)
      .Texts("in_keys_inv", options_.in_keys_inv);
}

absl::StatusOr<StepPlan> ActionScaling::PlanSteps(
    const TensorDictSpec& step) const {
  // Without the action in in_keys_inv the policy acts in the environment's own
  // range.
  if (!absl::c_linear_search(options_.in_keys_inv, "action")) {
    return StepPlan{.spec = step};
  }
  if (!outer_.has_value()) {
    return InvalidArgument(kPlanSteps,
                           ": spec: got none, want the environment's "
                           "action_spec() beside an environment");
  }
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckAction(kPlanSteps, step, *options_.spec));
  return transforms_internal::PlanAction(step, *options_.spec, *outer_);
}

absl::StatusOr<std::unique_ptr<ActionScaling>> ActionScaling::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckNumbers(options));
  Numbers numbers = {.loc = options.loc, .scale = options.scale};
  if (options.loc.empty()) {
    RILL_ASSIGN_OR_RETURN(numbers, NumbersOfSpec(*options.spec));
  }
  if (numbers.loc.size() != 1 && numbers.scale.size() != 1 &&
      numbers.loc.size() != numbers.scale.size()) {
    return InvalidArgument(kCreate, ": loc, scale: got ", numbers.loc.size(),
                           " and ", numbers.scale.size(),
                           " numbers, want as many, or one");
  }
  // The policy's x in [0, 1] is 2 x - 1 in [-1, 1]; both steps become one.
  if (!options.standard_normal) {
    // (2 x - 1) * scale + loc
    Numbers wide;
    for (size_t i = 0; i < numbers.size(); ++i) {
      wide.loc.push_back(numbers.Loc(i) - numbers.Scale(i));
      wide.scale.push_back(2 * numbers.Scale(i));
    }
    numbers = std::move(wide);
  }
  std::optional<LeafSpec> outer;
  if (options.spec.has_value()) {
    RILL_ASSIGN_OR_RETURN(outer, OuterSpec(options, numbers));
    RILL_RETURN_IF_ERROR(outer->CheckDomain()) << kCreate << ": spec";
  }
  // The map after reads is the formula alone, without a clamp.
  Rows rows = {.map = nullptr,
               .in_keys = options.in_keys,
               .inverse = std::make_shared<Unscale>(numbers, options.spec),
               .in_keys_inv = options.in_keys_inv};
  RILL_ASSIGN_OR_RETURN(rows.map,
                        MakeRowStep({.kind = RowStep::Kind::kShiftThenDivide,
                                     .scale = numbers.scale,
                                     .loc = numbers.loc}));
  if (outer.has_value()) {
    // Numbers that do not fit the spec are found here and not at the first
    // batch.
    const absl::StatusOr<LeafSpec> fits = rows.map->MapSpec(*options.spec);
    RILL_RETURN_IF_ERROR(fits.status()) << kCreate << ": spec";
  }
  RILL_RETURN_IF_ERROR(CheckRows(kCreate, rows));
  return absl::WrapUnique(new ActionScaling(options, std::move(outer), rows));
}

}  // namespace rill
