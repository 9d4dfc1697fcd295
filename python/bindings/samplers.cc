// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/samplers/prioritized_sampler.h"
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

SamplerPart Prioritized(double alpha, double beta, double eps,
                        bool max_priority_within_buffer) {
  PrioritizedSelector* selector = nullptr;
  const auto new_rows = max_priority_within_buffer
                            ? NewRowPriority::kMaxInBuffer
                            : NewRowPriority::kMaxEver;
  auto sampler = Value(MakePrioritizedSampler(
      {.alpha = alpha, .beta = beta, .epsilon = eps, .new_rows = new_rows},
      &selector));
  return Part(std::move(sampler), selector);
}

}  // namespace

void BindSamplers(nb::module_& module) {
  nb::class_<SamplerPart>(module, "Sampler");
  module.def("random_sampler", [] { return Part(MakeUniformSampler()); });
  module.def(
      "sampler_without_replacement",
      [](bool drop_last, bool shuffle) {
        return Part(MakeSamplerWithoutReplacement(
            {.shuffle = shuffle, .drop_last = drop_last}));
      },
      "drop_last"_a, "shuffle"_a);
  module.def("prioritized_sampler", &Prioritized, "alpha"_a, "beta"_a, "eps"_a,
             "max_priority_within_buffer"_a);
}

}  // namespace rill::python
