// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/priority_reduction.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

SamplerPart Part(std::unique_ptr<Sampler> sampler,
                 PrioritizedSelector* priorities = nullptr) {
  return {std::move(sampler), priorities};
}

SamplerPart Over(absl::string_view name, std::unique_ptr<Selector> selector,
                 UnitPart* unit) {
  SampleUnit taken = unit->Take();
  const std::string full_name = taken.SamplerName(name);
  return Part(
      Value(MakeSampler(std::move(selector), std::move(taken), full_name)));
}

PriorityReduction ReductionOf(const std::string& name) {
  if (name == "max") return PriorityReduction::kMax;
  if (name == "min") return PriorityReduction::kMin;
  if (name == "mean") return PriorityReduction::kMean;
  if (name == "median") return PriorityReduction::kMedian;
  throw StatusError{InvalidArgument("PrioritizedSampler: reduction: got \"",
                                    name,
                                    "\", want one of max, min, mean, median")};
}

// Without a unit: single rows.
SamplerPart Uniform(UnitPart* unit) {
  if (unit == nullptr) return Part(MakeUniformSampler());
  return Part(Value(MakeUniformSamplerOver(unit->Take())));
}

SamplerPart WithoutReplacement(bool drop_last, bool shuffle, UnitPart* unit) {
  const WithoutReplacementOptions options = {.shuffle = shuffle,
                                             .drop_last = drop_last};
  if (unit == nullptr) return Part(MakeSamplerWithoutReplacement(options));
  return Over("SamplerWithoutReplacement",
              MakeWithoutReplacementSelector(options), unit);
}

SamplerPart Prioritized(double alpha, double beta, double eps,
                        const std::string& reduction,
                        bool max_priority_within_buffer, UnitPart* unit) {
  PrioritizedSelector* selector = nullptr;
  const auto new_rows = max_priority_within_buffer
                            ? NewRowPriority::kMaxInBuffer
                            : NewRowPriority::kGiven;
  const PrioritizedOptions options = {
      .alpha = alpha, .beta = beta, .epsilon = eps, .new_rows = new_rows};
  auto sampler =
      Value(unit == nullptr
                ? MakePrioritizedSampler(options, &selector)
                : MakePrioritizedSamplerOver(unit->Take(), options, &selector));
  SamplerPart part = Part(std::move(sampler), selector);
  part.reduction = ReductionOf(reduction);
  return part;
}

SamplerPart Consuming(int64_t max_sample_count, UnitPart* unit) {
  ConsumingOptions options = {.max_times_sampled = max_sample_count};
  if (unit == nullptr) {
    return Part(Value(MakeConsumingSampler(std::move(options))));
  }
  return Over("ConsumingSampler",
              Value(MakeConsumingSelector(std::move(options))), unit);
}

// `weight`: a function of the staleness, or None.
SamplerPart Staleness(int64_t max_staleness, const nb::object& weight,
                      UnitPart* unit) {
  StalenessOptions options = {.max_staleness = max_staleness};
  if (!weight.is_none()) {
    options.weight = [function = SharedObject(weight)](int64_t staleness) {
      // Which a plan refuses; the exception is that of the call.
      double value = std::numeric_limits<double>::quiet_NaN();
      absl::Status called = CallPython("staleness_weight_fn", [&] {
        value = nb::cast<double>(nb::float_(function.get()(staleness)));
      });
      if (!called.ok()) NoteFailure(std::move(called));
      return value;
    };
  }
  if (unit == nullptr) return Part(MakeStalenessAwareSampler(options));
  return Over("StalenessAwareSampler", MakeStalenessSelector(options), unit);
}

}  // namespace

void BindSamplers(nb::module_& module) {
  nb::class_<SamplerPart>(module, "Sampler");
  module.def("random_sampler", &Uniform, "unit"_a.none());
  module.def("sampler_without_replacement", &WithoutReplacement, "drop_last"_a,
             "shuffle"_a, "unit"_a.none());
  module.def("prioritized_sampler", &Prioritized, "alpha"_a, "beta"_a, "eps"_a,
             "reduction"_a, "max_priority_within_buffer"_a, "unit"_a.none());
  module.def("consuming_sampler", &Consuming, "max_sample_count"_a,
             "unit"_a.none());
  module.def("staleness_aware_sampler", &Staleness, "max_staleness"_a,
             "staleness_weight_fn"_a.none(), "unit"_a.none());
}

}  // namespace rill::python
