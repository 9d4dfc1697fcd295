// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/hindsight_unit.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/units/rows_unit.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

absl::string_view NameOf(HindsightStrategy strategy) {
  switch (strategy) {
    case HindsightStrategy::kFuture:
      return "kFuture";
    case HindsightStrategy::kFinal:
      return "kFinal";
    case HindsightStrategy::kEpisode:
      return "kEpisode";
    case HindsightStrategy::kRandom:
      return "kRandom";
  }
  return "";
}

class HindsightUnit final : public samplers_internal::RowsUnit {
 public:
  explicit HindsightUnit(const HindsightUnitOptions& options)
      : RowsUnit({.name = "Hindsight",
                  .options = OptionValues()
                                 .Choice("strategy", NameOf(options.strategy))
                                 .Double("ratio", options.ratio),
                  .layout = {.context = {{PlanLayout::kGoals, 1}}}}),
        options_(options) {}

  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

 private:
  Slot GoalOf(Slot slot, uint64_t bits) const;

  const HindsightUnitOptions options_;
};

Slot HindsightUnit::GoalOf(Slot slot, uint64_t bits) const {
  if (options_.strategy == HindsightStrategy::kRandom) {
    return anchors().At(BoundedInt(bits, anchors().size()));
  }
  const Row row = RowOf(slot);
  // The goal is one of rows [first, rows). For kFinal that is the last one.
  int64_t first = row.rows - 1;
  if (options_.strategy == HindsightStrategy::kFuture) first = row.offset;
  if (options_.strategy == HindsightStrategy::kEpisode) first = 0;
  return index().At(row.trajectory, first + BoundedInt(bits, row.rows - first));
}

void HindsightUnit::Expand(const Rng& rng, uint64_t batch_number,
                           SamplePlan* plan) const {
  SamplePlan::Context& goals = plan->context[0];
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    // One block a draw: the low half says whether, the high half which goal. A
    // draw's goal does not depend on the others'.
    const Rng::Block bits = rng.Bits(batch_number, static_cast<uint32_t>(i));
    if (UnitDouble(LowBits64(bits)) >= options_.ratio) continue;
    goals.rows.push_back(GoalOf(plan->draws[i].slot, HighBits64(bits)));
    goals.segments.push_back(static_cast<int64_t>(i));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeHindsightUnit(
    const HindsightUnitOptions& options) {
  if (!(options.ratio >= 0 && options.ratio <= 1)) {
    return InvalidArgument("MakeHindsightUnit: ratio: got ", options.ratio,
                           ", want [0, 1]");
  }
  return std::make_unique<HindsightUnit>(options);
}

}  // namespace rill
