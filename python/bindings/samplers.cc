// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
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

// Without a unit: single rows.
SamplerPart Uniform(UnitPart* unit) {
  if (unit == nullptr) return Part(MakeUniformSampler());
  return Part(Value(MakeUniformSamplerOver(unit->Take())));
}

SamplerPart WithoutReplacement(bool drop_last, bool shuffle, UnitPart* unit) {
  const WithoutReplacementOptions options = {.shuffle = shuffle,
                                             .drop_last = drop_last};
  if (unit == nullptr) return Part(MakeSamplerWithoutReplacement(options));
  SampleUnit taken = unit->Take();
  const std::string name = taken.SamplerName("SamplerWithoutReplacement");
  return Part(Value(MakeSampler(MakeWithoutReplacementSelector(options),
                                std::move(taken), name)));
}

SamplerPart Prioritized(double alpha, double beta, double eps,
                        bool max_priority_within_buffer, UnitPart* unit) {
  PrioritizedSelector* selector = nullptr;
  const auto new_rows = max_priority_within_buffer
                            ? NewRowPriority::kMaxInBuffer
                            : NewRowPriority::kMaxEver;
  const PrioritizedOptions options = {
      .alpha = alpha, .beta = beta, .epsilon = eps, .new_rows = new_rows};
  auto sampler =
      Value(unit == nullptr
                ? MakePrioritizedSampler(options, &selector)
                : MakePrioritizedSamplerOver(unit->Take(), options, &selector));
  return Part(std::move(sampler), selector);
}

}  // namespace

void BindSamplers(nb::module_& module) {
  nb::class_<SamplerPart>(module, "Sampler");
  module.def("random_sampler", &Uniform, "unit"_a.none());
  module.def("sampler_without_replacement", &WithoutReplacement, "drop_last"_a,
             "shuffle"_a, "unit"_a.none());
  module.def("prioritized_sampler", &Prioritized, "alpha"_a, "beta"_a, "eps"_a,
             "max_priority_within_buffer"_a, "unit"_a.none());
}

}  // namespace rill::python
