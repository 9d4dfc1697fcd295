// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/n_step_unit.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/units/rows_unit.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

class NStepUnit final : public samplers_internal::RowsUnit {
 public:
  explicit NStepUnit(int64_t steps)
      : RowsUnit(steps, absl::StrCat("windows have ", steps, " steps")),
        steps_(steps) {}

  size_t num_contexts() const override { return 2; }
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;
  absl::string_view name() const override { return "NStep"; }

 private:
  const int64_t steps_;
};

void NStepUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                       SamplePlan* plan) const {
  SamplePlan::Context& following = plan->context[0];
  SamplePlan::Context& last = plan->context[1];
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const Slot slot = plan->draws[i].slot;
    const Row row = RowOf(slot);
    const int64_t count = std::min(steps_ - 1, row.rows - row.offset - 1);
    index().AppendSlots(row.trajectory, row.offset + 1, count, &following.rows);
    following.segments.resize(following.rows.size(), static_cast<int64_t>(i));
    last.rows.push_back(count == 0 ? slot : following.rows.back());
    last.segments.push_back(static_cast<int64_t>(i));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeNStepUnit(
    const NStepUnitOptions& options) {
  if (options.steps < 1 || options.steps > Sampler::kMaxBatchSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("MakeNStepUnit: steps: got ", options.steps, ", want [1, ",
                     Sampler::kMaxBatchSize, "]"));
  }
  return std::make_unique<NStepUnit>(options.steps);
}

}  // namespace rill
