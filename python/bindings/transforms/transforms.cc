// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/python/bindings/transforms/transform_maker.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

const TransformMakers& AllMakers() {
  static const TransformMakers* const makers = [] {
    auto* all = new TransformMakers;
    AddStructure(all);
    AddImages(all);
    AddValues(all);
    AddEpisodes(all);
    AddEstimators(all);
    return all;
  }();
  return *makers;
}

TransformPart Make(const std::string& name, const nb::dict& options) {
  const auto maker = AllMakers().find(name);
  if (maker == AllMakers().end()) {
    throw StatusError{
        NotFound("transform: got \"", name, "\", want the name of one")};
  }
  // Options are taken out of a copy.
  OptionReader reader(name, nb::borrow<nb::dict>(options.attr("copy")()));
  return {Value(maker->second(&reader))};
}

}  // namespace

void BindTransforms(nb::module_& module) {
  nb::class_<TransformPart>(module, "Transform");
  module.def("transform", &Make);
}

}  // namespace rill::python
