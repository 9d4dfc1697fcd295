// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/trajectory_unit.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/samplers/trajectories/start_rule.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/units/slice_anchors.h"

namespace rill {
namespace {

using samplers_internal::SliceAnchors;

class TrajectoryUnit final : public Unit, private Anchors {
 public:
  explicit TrajectoryUnit(const TrajectoryUnitOptions& options)
      : options_(options),
        starts_(StartRule{.length = options.min_rows,
                          .only_first = true,
                          .needs_beginning = options.only_complete,
                          .needs_end = options.only_complete}) {}

  const Anchors& anchors() const override { return *this; }
  void SetListener(AnchorListener* listener) override {
    starts_.SetListener(listener);
  }
  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    return batch_size;
  }
  absl::Status CheckAnchors() const override;
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

  void SaveState(samplers_internal::StateWriter* writer) const override {
    starts_.Save(writer);
  }
  absl::Status LoadState(samplers_internal::StateReader* reader) override {
    return starts_.Load(reader);
  }
  absl::string_view name() const override { return "Trajectory"; }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    starts_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { starts_.OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { starts_.OnWrite(event); }
  void OnClear() override { starts_.OnClear(); }

 private:
  const TrajectoryIndex& index() const { return starts_.index(); }

  // Anchors.
  int64_t size() const override { return starts_.trajectories().size(); }
  Slot At(int64_t n) const override {
    return index().At(starts_.trajectories().members()[n], 0);
  }
  bool Contains(Slot slot) const override { return starts_.Contains(slot); }
  Slot Pick(const Rng::Block& bits) const override {
    return At(
        BoundedInt(bits[0] | (static_cast<uint64_t>(bits[1]) << 32), size()));
  }

  const TrajectoryUnitOptions options_;
  SliceAnchors starts_;
};

absl::Status TrajectoryUnit::CheckAnchors() const {
  if (size() > 0) return absl::OkStatus();
  if (index().num_rows() == 0) {
    return absl::FailedPreconditionError(
        "live rows: got 0, want >= 1; write more rows first");
  }
  const auto [shortest, longest] = index().RangeOfRows();
  return absl::FailedPreconditionError(absl::StrCat(
      "trajectories: got ", index().num_trajectories(), " of ", shortest,
      " to ", longest, " rows, want one of ", options_.min_rows, " or more",
      options_.only_complete ? " whose beginning and end are stored" : "",
      "; write more rows first"));
}

void TrajectoryUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                            SamplePlan* plan) const {
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const std::optional<TrajectoryIndex::Place> place =
        index().Find(plan->draws[i].slot);
    if (!place.has_value()) continue;  // No anchor: a selector's mistake.
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
    return absl::InvalidArgumentError(absl::StrCat(
        "MakeTrajectoryUnit: min_rows: got ", options.min_rows, ", want >= 1"));
  }
  if (options.max_rows < options.min_rows ||
      options.max_rows > Sampler::kMaxBatchSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("MakeTrajectoryUnit: max_rows: got ", options.max_rows,
                     ", want [min_rows, ", Sampler::kMaxBatchSize,
                     "], min_rows is ", options.min_rows));
  }
  return std::make_unique<TrajectoryUnit>(options);
}

}  // namespace rill
