// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/step_rows.h"

#include "rill/base/status_macros.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/steps/lane_results.h"

namespace rill::transforms_internal {

absl::Status MapStepPairs(const RowMap& map, const DeviceSteps::Call& call,
                          const StepPairs& pairs, DeviceWork* memory) {
  if (pairs.empty()) return absl::OkStatus();
  DeviceWork::Call work(memory);
  RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
  ElementCopies copies(&work.stream());
  LaneResults results(&call, &work);
  for (const auto& [from, to] : pairs) {
    DeviceRows rows(from, /*batch_rank=*/1, &work, &copies);
    RILL_RETURN_IF_ERROR(map.MapOnDevice(&rows));
    RILL_ASSIGN_OR_RETURN(const Tensor place, results.PlaceOf(to));
    RILL_RETURN_IF_ERROR(rows.FinishInto(place));
  }
  RILL_RETURN_IF_ERROR(copies.Launch());
  RILL_RETURN_IF_ERROR(results.Finish());
  return work.End();
}

}  // namespace rill::transforms_internal
