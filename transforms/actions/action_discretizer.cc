// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_discretizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_specs.h"
#include "rill/transforms/actions/choice_kernels.h"
#include "rill/transforms/env/device_draws.h"
#include "rill/transforms/env/lane_draws.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {
namespace {

using transforms_internal::ChoiceRows;
using transforms_internal::DeviceWork;
using transforms_internal::DrawStream;
using transforms_internal::ElementBounds;
using transforms_internal::LaneDraws;
using Sampling = ActionDiscretizer::Sampling;

constexpr absl::string_view kCreate = "ActionDiscretizer::Create";
constexpr absl::string_view kPlanSteps = "ActionDiscretizer::PlanSteps";
constexpr absl::string_view kOnAction = "ActionDiscretizer::OnAction";

absl::string_view WordOf(Sampling sampling) {
  constexpr absl::string_view kWords[] = {"median", "low", "high", "random"};
  return kWords[static_cast<size_t>(sampling)];
}

class ActionDiscretizerTransform final : public StepTransform,
                                         public DeviceSteps {
 public:
  // `nvec`: of the elements of the last dimension.
  ActionDiscretizerTransform(const ActionDiscretizer::Options& options,
                             ElementBounds bounds, std::vector<int64_t> nvec,
                             LeafSpec outer)
      : options_(options),
        bounds_(std::move(bounds)),
        nvec_(std::move(nvec)),
        outer_(std::move(outer)) {
    device_bounds_ = bounds_.low;
    device_bounds_.insert(device_bounds_.end(), bounds_.high.begin(),
                          bounds_.high.end());
    std::vector<int64_t> begins;
    int64_t begin = 0;
    for (size_t i = 0; i < bounds_.low.size(); ++i) {
      device_choices_.push_back(nvec_[i % nvec_.size()]);
      begins.push_back(begin);
      begin += options_.categorical ? 1 : device_choices_.back();
    }
    device_choices_.insert(device_choices_.end(), begins.begin(), begins.end());
  }

  absl::string_view name() const override { return "ActionDiscretizer"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Text("spec", options_.spec.ToString())
        .Text("num_intervals", absl::StrJoin(options_.num_intervals, " "))
        .Choice("sampling", WordOf(options_.sampling))
        .Bool("categorical", options_.categorical)
        .Unsigned("seed", options_.seed);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckAction(kPlanSteps, step, options_.spec));
    return transforms_internal::PlanAction(step, options_.spec, outer_);
  }

  absl::StatusOr<TensorDict> InitialState(int64_t lanes) const override {
    if (!is_random()) return TensorDict();
    return LaneDraws::InitialState(lanes);
  }

  absl::Status OnSeed(uint64_t seed, TensorDict* state) const override {
    return is_random() ? LaneDraws::Restart(seed, state) : absl::OkStatus();
  }

  absl::Status OnAction(Leaves leaves, TensorDict* state) const override {
    const BoundLeaf& from = leaves[0];
    const BoundLeaf& to = leaves[1];
    std::optional<LaneDraws> draws;
    if (is_random()) {
      RILL_ASSIGN_OR_RETURN(
          draws, LaneDraws::Create(kOnAction, DrawStream::kActionDiscretizer,
                                   options_.seed, from.rows, &spare_, state));
    }
    for (int64_t lane = 0; lane < from.rows; ++lane) {
      RILL_RETURN_IF_ERROR(MapLane(lane, from.data + lane * from.width, to,
                                   draws.has_value() ? &*draws : nullptr));
    }
    return absl::OkStatus();
  }

  bool has_faults() const override { return true; }
  absl::Status FaultOf(int64_t fault) const override {
    return transforms_internal::WrongChoice(kOnAction, fault);
  }
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override {
    const Tensor& to = leaves[1];
    const int64_t lanes = to.shape()[0];
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    transforms_internal::DiscretizeKernel kernel = {
        .from =
            transforms_internal::ChoicesOf(leaves[0], !options_.categorical),
        .to = to.raw_data(),
        .to_double = to.dtype() == DType::kFloat64,
        .elements = static_cast<int64_t>(bounds_.low.size()),
        .lanes = lanes,
        .part = PartOf(),
        .draws = {},
        .fault = call.fault};
    RILL_ASSIGN_OR_RETURN(kernel.bounds,
                          work.Copy(absl::MakeConstSpan(device_bounds_)));
    RILL_ASSIGN_OR_RETURN(kernel.choices,
                          work.Copy(absl::MakeConstSpan(device_choices_)));
    if (is_random()) {
      RILL_ASSIGN_OR_RETURN(kernel.draws, transforms_internal::DrawOnDevice(
                                              DrawStream::kActionDiscretizer,
                                              options_.seed, &work, state));
    }
    RILL_RETURN_IF_ERROR(LaunchKernel(kernel, GridFor(lanes), call.stream));
    return work.End();
  }

 private:
  bool is_random() const { return options_.sampling == Sampling::kRandom; }

  // The elements of a row follow one another, each with a choice of its own
  // number of options. A one-hot choice takes as many elements as it has
  // options.
  absl::Status MapLane(int64_t lane, const std::byte* row, const BoundLeaf& to,
                       LaneDraws* draws) const {
    const bool is_float = to.dtype == DType::kFloat32;
    std::byte* const out = to.data + lane * to.width;
    for (size_t i = 0; i < bounds_.low.size(); ++i) {
      // Options differ along the last dimension alone.
      const int64_t n = nvec_[i % nvec_.size()];
      const ChoiceRows choice = {.dtype = outer_.dtype,
                                 .is_one_hot = !options_.categorical,
                                 .options = n};
      const int64_t interval = choice.Read(row, 0);
      row += (options_.categorical ? 1 : n) * DTypeSize(outer_.dtype);
      if (interval < 0) {
        return InvalidArgument(
            kOnAction, ": action of lane ", lane, ", element ", i,
            ": got no interval, want one of [0, ", n - 1, "]");
      }
      const double value = NumberOf(i, interval, n, lane, draws);
      if (is_float) {
        reinterpret_cast<float*>(out)[i] = Inside<float>(i, value);
      } else {
        reinterpret_cast<double*>(out)[i] = Inside<double>(i, value);
      }
    }
    return absl::OkStatus();
  }

  // The place in the interval, where none is drawn.
  double PartOf() const {
    if (options_.sampling == Sampling::kLow) return 0;
    return options_.sampling == Sampling::kHigh ? 1 : 0.5;
  }

  // low + (interval + part) / n * (high - low), in double.
  double NumberOf(size_t element, int64_t interval, int64_t n, int64_t lane,
                  LaneDraws* draws) const {
    double part = PartOf();
    if (draws != nullptr) {
      part =
          draws->rng().UniformDouble(draws->Next(static_cast<size_t>(lane)), 0);
    }
    const double low = bounds_.low[element];
    const double high = bounds_.high[element];
    const double share =
        (static_cast<double>(interval) + part) / static_cast<double>(n);
    // The bounds may be further apart than the largest number.
    return std::isfinite(high - low) ? low + share * (high - low)
                                     : (1 - share) * low + share * high;
  }

  // Rounding to T may leave the bounds by a bit, so the number is clamped after
  // it, to bounds that are rounded to T as well.
  template <typename T>
  T Inside(size_t element, double value) const {
    return std::clamp(static_cast<T>(value),
                      static_cast<T>(bounds_.low[element]),
                      static_cast<T>(bounds_.high[element]));
  }

  const ActionDiscretizer::Options options_;
  mutable transforms_internal::SpareTensors spare_{4};
  const ElementBounds bounds_;
  const std::vector<int64_t> nvec_;
  const LeafSpec outer_;
  // As DiscretizeKernel reads them.
  std::vector<double> device_bounds_;
  std::vector<int64_t> device_choices_;
  mutable DeviceWork device_work_{4};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> ActionDiscretizer::Create(
    const Options& options) {
  RILL_ASSIGN_OR_RETURN(ElementBounds bounds, transforms_internal::FiniteBounds(
                                                  kCreate, options.spec));
  const Shape& shape = options.spec.shape;
  // A scalar has one choice, which needs no dimension for choices.
  const bool is_scalar = shape.rank() == 0;
  const auto last =
      static_cast<size_t>(is_scalar ? 1 : shape[shape.rank() - 1]);
  std::vector<int64_t> nvec = options.num_intervals;
  if (nvec.size() == 1) nvec.assign(last, options.num_intervals[0]);
  if (last == 0 || nvec.size() != last ||
      *std::min_element(nvec.begin(), nvec.end()) < 1) {
    return InvalidArgument(kCreate, ": num_intervals: got [",
                           absl::StrJoin(options.num_intervals, ", "),
                           "], want a number > 0, or one for each of the ",
                           last, " elements of the last dimension of ",
                           options.spec.ToString());
  }
  LeafSpec outer;
  if (is_scalar) {
    outer = options.categorical ? LeafSpec::Categorical(nvec[0])
                                : LeafSpec::OneHot(nvec[0]);
  } else {
    const Shape lead = shape.Prefix(shape.rank() - 1);
    outer = options.categorical
                ? LeafSpec::MultiCategorical(nvec, DType::kInt64, lead)
                : LeafSpec::MultiOneHot(nvec, DType::kBool, lead);
  }
  // The specs of choices have limits of their own, such as options that the
  // dtype cannot count.
  RILL_RETURN_IF_ERROR(outer.CheckDomain()) << kCreate << ": num_intervals";
  return std::make_unique<ActionDiscretizerTransform>(
      options, std::move(bounds), std::move(nvec), std::move(outer));
}

}  // namespace rill
