// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rate_limiter.h"

#include <cstdint>
#include <memory>

#include "nanobind/nanobind.h"
#include "nanobind/stl/shared_ptr.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/status.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

std::shared_ptr<RateLimiter> Limiter(double samples_per_insert,
                                     int64_t min_size_to_sample,
                                     double min_diff, double max_diff) {
  return Value(RateLimiter::Create({.samples_per_insert = samples_per_insert,
                                    .min_size_to_sample = min_size_to_sample,
                                    .min_diff = min_diff,
                                    .max_diff = max_diff}));
}

}  // namespace

void BindRateLimiter(nb::module_& module) {
  nb::class_<RateLimiter>(module, "RateLimiter")
      .def("can_insert", &RateLimiter::CanInsert, "rows"_a)
      .def("can_sample", &RateLimiter::CanSample, "rows"_a)
      .def_prop_ro("inserts",
                   [](const RateLimiter& limiter) {
                     return limiter.GetStats().done.inserts;
                   })
      .def_prop_ro("samples",
                   [](const RateLimiter& limiter) {
                     return limiter.GetStats().done.samples;
                   })
      .def("close", &RateLimiter::Close);
  module.def("rate_limiter", &Limiter, "samples_per_insert"_a,
             "min_size_to_sample"_a, "min_diff"_a, "max_diff"_a);
}

}  // namespace rill::python
