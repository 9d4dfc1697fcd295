// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SAMPLER_TRAITS_H_
#define RILL_SAMPLERS_SAMPLER_TRAITS_H_

#include <memory>
#include <string>

#include "rill/base/option_values.h"
#include "rill/slots/plan_layout.h"

namespace rill {

class PriorityMassGauge;  // samplers/prioritized/priority_mass.h
class PriorityUpdater;    // samplers/prioritized/priority_updater.h
class UnitTransform;      // transforms/unit_transform.h

// The facts about a sampler, fixed when it is made. Other parts and
// checkpoints are compared with it.
//
// Thread-safety: a value.
struct SamplerTraits {
  // "UniformSampler": stored in checkpoints and named in errors.
  std::string name;
  // The options that it was made with, for checkpoints to compare.
  // One that does not say is taken to be as it was.
  OptionValues options = {};
  // Draw::weight is other than 1.
  bool is_weighted = false;
  // An item is rows of consecutive steps, or reads some, so that a row in
  // another's place would tear them.
  bool needs_order = false;
  // It goes through its items epoch by epoch (SamplePlan::epoch).
  bool has_epochs = false;
  // A plan may have fewer items than were asked for, as the last of an epoch.
  bool may_be_short = false;
  // Sampler::LoadState takes LoadOptions::moved, and `changed`.
  bool loads_moved_rows = false;
  bool loads_changed_options = false;
  // The layout of every plan.
  PlanLayout layout = {};
  // The arithmetic on the values of a plan's rows (samplers/sample_unit.h), for
  // a reader of them: a ReplayBuffer. Null: rows are the batch as they are.
  std::shared_ptr<const UnitTransform> arithmetic = nullptr;
  // Takes priorities that lie on the device where the sampler's do. Null: they
  // lie in host memory, or there are none.
  std::shared_ptr<PriorityUpdater> priority_updater = nullptr;
  // The sum of its priorities. Null: they lie on a device, or there are none.
  std::shared_ptr<const PriorityMassGauge> priority_mass = nullptr;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SAMPLER_TRAITS_H_
