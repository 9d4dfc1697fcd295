// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNIT_TRAITS_H_
#define RILL_SAMPLERS_UNIT_TRAITS_H_

#include <string>

#include "rill/base/option_values.h"
#include "rill/slots/plan_layout.h"

namespace rill {

// The facts about a unit, fixed when it is made. A sampler checks it
// against the selector, and makes its own traits of both (composed_sampler.h).
//
// Thread-safety: a value.
struct UnitTraits {
  std::string name;  // "Transition".
  // The options that it was made with, as SamplerTraits::options.
  OptionValues options = {};
  // It was given a rule by which Anchors::Pick picks, so that a selector that
  // never calls it would make nothing of that.
  bool picks_by_rule = false;
  // An item is its anchor's row, and nothing but that is read.
  bool is_row = false;
  // The layout of every plan.
  PlanLayout layout = {};
};

}  // namespace rill

#endif  // RILL_SAMPLERS_UNIT_TRAITS_H_
