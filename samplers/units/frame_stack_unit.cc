// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/frame_stack_unit.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/units/rows_unit.h"

namespace rill {
namespace {

class FrameStackUnit final : public samplers_internal::RowsUnit {
 public:
  explicit FrameStackUnit(int64_t frames)
      : RowsUnit(frames, absl::StrCat("rows have ", frames, " frames")),
        frames_(frames) {}

  size_t num_contexts() const override { return 1; }
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;
  absl::string_view name() const override { return "FrameStack"; }

 private:
  const int64_t frames_;
};

void FrameStackUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                            SamplePlan* plan) const {
  SamplePlan::Context& before = plan->context[0];
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    const Row row = RowOf(plan->draws[i].slot);
    const int64_t there = std::min(frames_ - 1, row.offset);
    if (const int64_t missing = frames_ - 1 - there; missing > 0) {
      before.mask.resize(before.rows.size(), 1);
      before.rows.resize(before.rows.size() + missing,
                         index().At(row.trajectory, 0));
      before.mask.resize(before.rows.size(), 0);
    }
    index().AppendSlots(row.trajectory, row.offset - there, there,
                        &before.rows);
    before.segments.resize(before.rows.size(), static_cast<int64_t>(i));
  }
  if (!before.mask.empty()) before.mask.resize(before.rows.size(), 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeFrameStackUnit(
    const FrameStackUnitOptions& options) {
  if (options.frames < 1 || options.frames > Sampler::kMaxBatchSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("MakeFrameStackUnit: frames: got ", options.frames,
                     ", want [1, ", Sampler::kMaxBatchSize, "]"));
  }
  return std::make_unique<FrameStackUnit>(options.frames);
}

}  // namespace rill
