// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/trajectory_unit.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/starts_unit.h"

namespace rill {
namespace {

using samplers_internal::StartsUnit;

UnitTraits TraitsOf(const TrajectoryUnitOptions& options) {
  return {.name = "Trajectory",
          .options = OptionValues()
                         .Int("min_rows", options.min_rows)
                         .Int("max_rows", options.max_rows)
                         .Bool("only_complete", options.only_complete),
          .layout = {.length = options.max_rows}};
}

class TrajectoryUnit final : public StartsUnit {
 public:
  explicit TrajectoryUnit(const TrajectoryUnitOptions& options)
      : StartsUnit(TraitsOf(options), {.length = options.min_rows,
                                       .only_first = true,
                                       .needs_beginning = options.only_complete,
                                       .needs_end = options.only_complete,
                                       .keeps_longest = true}),
        options_(options) {}

  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override;
  absl::Status CheckAnchors() const override;
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

 private:
  // Anchors.
  int64_t size() const override { return trajectories().size(); }
  Slot At(int64_t n) const override {
    return index().At(trajectories().members()[n], 0);
  }
  Slot Pick(const Rng::Block& bits) const override {
    return At(BoundedInt(LowBits64(bits), size()));
  }

  const TrajectoryUnitOptions options_;
};

absl::StatusOr<int64_t> TrajectoryUnit::NumAnchors(int64_t batch_size) const {
  // Before anything is drawn: the longest trajectory bounds every batch, so
  // that a plan never fails by chance.
  const int64_t most = Sampler::kMaxBatchSize / batch_size;
  const int64_t longest =
      std::min(index().LongestWithStarts(/*rule=*/0), options_.max_rows);
  if (longest <= most) return batch_size;
  return InvalidArgument(
      "batch size: got ", batch_size, ", want [1, ",
      Sampler::kMaxBatchSize / longest, "] where trajectories have up to ",
      longest, " rows, so that a batch has at most ", Sampler::kMaxBatchSize,
      " rows; lower it, or max_rows");
}

absl::Status TrajectoryUnit::CheckAnchors() const {
  return CheckStarts(
      options_.min_rows,
      options_.only_complete ? " whose beginning and end are stored" : "",
      "write more rows first");
}

void TrajectoryUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                            SamplePlan* plan) const {
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const std::optional<TrajectoryIndex::Place> place =
        index().Find(plan->draws[i].slot);
    if (!place.has_value()) continue;  // No anchor: a selector's mistake.
    // An anchor is the first live row of its trajectory, so the item is all
    // that is stored of it, up to max_rows.
    const int64_t rows = index().Get(place->trajectory).rows - place->offset;
    index().AppendSlots(place->trajectory, place->offset,
                        std::min(rows, options_.max_rows), &plan->rows);
    plan->segments.resize(plan->rows.size(), static_cast<int64_t>(i));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeTrajectoryUnit(
    const TrajectoryUnitOptions& options) {
  if (options.min_rows < 1) {
    return InvalidArgument("MakeTrajectoryUnit: min_rows: got ",
                           options.min_rows, ", want >= 1");
  }
  if (options.max_rows < options.min_rows ||
      options.max_rows > Sampler::kMaxBatchSize) {
    return InvalidArgument("MakeTrajectoryUnit: max_rows: got ",
                           options.max_rows, ", want [min_rows, ",
                           Sampler::kMaxBatchSize, "], min_rows is ",
                           options.min_rows);
  }
  return std::make_unique<TrajectoryUnit>(options);
}

}  // namespace rill
