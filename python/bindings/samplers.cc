// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/priority_reduction.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// `name`: that of the sampler in its saves.
SelectorPart Part(const char* name, std::unique_ptr<Selector> selector) {
  return {.name = name, .selector = std::move(selector)};
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

SelectorPart WithoutReplacement(bool drop_last, bool shuffle) {
  return Part("SamplerWithoutReplacement",
              MakeWithoutReplacementSelector(
                  {.shuffle = shuffle, .drop_last = drop_last}));
}

SelectorPart Prioritized(double alpha, double beta, double eps,
                         const std::string& reduction,
                         bool max_priority_within_buffer) {
  auto selector = Value(PrioritizedSelector::Create(
      {.alpha = alpha,
       .beta = beta,
       .epsilon = eps,
       .new_rows = max_priority_within_buffer ? NewRowPriority::kMaxInBuffer
                                              : NewRowPriority::kGiven}));
  PrioritizedSelector* const priorities = selector.get();
  SelectorPart part = Part("PrioritizedSampler", std::move(selector));
  part.priorities = priorities;
  part.reduction = ReductionOf(reduction);
  return part;
}

SelectorPart Consuming(int64_t max_sample_count) {
  return Part(
      "ConsumingSampler",
      Value(MakeConsumingSelector({.max_times_sampled = max_sample_count})));
}

// `weight`: a function of the staleness, or None.
SelectorPart Staleness(int64_t max_staleness, const nb::object& weight) {
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
  return Part("StalenessAwareSampler", MakeStalenessSelector(options));
}

// `selectors`: of as many parts as there are shares. Priorities are those of
// the first part that has some.
SelectorPart Mixture(const nb::list& selectors,
                     const std::vector<double>& shares) {
  std::vector<MixturePart> parts;
  SelectorPart mixture = Part("MixtureSampler", nullptr);
  for (size_t i = 0; i < shares.size(); ++i) {
    auto* part = nb::cast<SelectorPart*>(selectors[i]);
    if (mixture.priorities == nullptr && part->priorities != nullptr) {
      mixture.priorities = part->priorities;
      mixture.reduction = part->reduction;
    }
    parts.push_back(
        {.selector = std::move(part->selector), .share = shares[i]});
  }
  mixture.selector = Value(MakeMixtureSelector(std::move(parts)));
  return mixture;
}

// Without a unit: single rows.
SamplerPart Make(SelectorPart* selector, UnitPart* unit) {
  SampleUnit taken = unit == nullptr ? MakeTransitionUnit() : unit->Take();
  const std::string name = taken.SamplerName(selector->name);
  return {
      Value(MakeSampler(std::move(selector->selector), std::move(taken), name)),
      selector->priorities, selector->reduction};
}

}  // namespace

void BindSamplers(nb::module_& module) {
  nb::class_<SamplerPart>(module, "Sampler");
  nb::class_<SelectorPart>(module, "Selector");
  module.def("sampler", &Make, "selector"_a, "unit"_a.none());
  module.def("random_selector",
             [] { return Part("UniformSampler", MakeUniformSelector()); });
  module.def("recent_selector",
             [] { return Part("RecentSampler", MakeRecentSelector()); });
  module.def("without_replacement_selector", &WithoutReplacement, "drop_last"_a,
             "shuffle"_a);
  module.def("prioritized_selector", &Prioritized, "alpha"_a, "beta"_a, "eps"_a,
             "reduction"_a, "max_priority_within_buffer"_a);
  module.def("consuming_selector", &Consuming, "max_sample_count"_a);
  module.def("staleness_selector", &Staleness, "max_staleness"_a,
             "staleness_weight_fn"_a.none());
  module.def("mixture_selector", &Mixture, "selectors"_a, "shares"_a);
}

}  // namespace rill::python
