// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTOR_TRAITS_H_
#define RILL_SAMPLERS_SELECTOR_TRAITS_H_

#include <memory>
#include <string>

#include "rill/base/option_values.h"

namespace rill {

class PriorityMassGauge;  // samplers/prioritized/priority_mass.h
class PriorityUpdater;    // samplers/prioritized/priority_updater.h

// The facts about a selector, fixed when it is made. A sampler checks it
// against the unit, and makes its own traits of both (composed_sampler.h).
//
// Thread-safety: a value.
struct SelectorTraits {
  std::string name;  // "Uniform".
  // The options that it was made with, as SamplerTraits::options.
  OptionValues options = {};
  // Draw::weight is other than 1.
  bool is_weighted = false;
  // It leaves the choice to the unit's own rule (Anchors::Pick).
  bool picks_by_unit = false;
  // It goes by the order in which rows were appended, so that a row in
  // another's place misleads it.
  bool needs_order = false;
  // A Select may give fewer draws than were asked for.
  bool may_be_short = false;
  // It is notified which rows are anchors. False: the unit need not find out.
  bool needs_anchor_events = true;
  // Selector::LoadState takes rows that have moved. False: its state is not
  // loaded then, and starts as if the rows were new.
  bool loads_moved_rows = false;
  // As SamplerTraits has them.
  std::shared_ptr<PriorityUpdater> priority_updater = nullptr;
  std::shared_ptr<const PriorityMassGauge> priority_mass = nullptr;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTOR_TRAITS_H_
