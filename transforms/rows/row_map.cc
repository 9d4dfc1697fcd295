// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/row_map.h"

#include "rill/base/status_macros.h"
#include "rill/transforms/rows/device_rows.h"

namespace rill {

absl::Status RowMap::MapOnDevice(DeviceRows* rows) const {
  if (steps().empty()) {
    return FailedPrecondition(
        "got rows on a device, want them in host memory: the map has no form "
        "for a device");
  }
  for (const RowStep& step : steps()) {
    RILL_RETURN_IF_ERROR(rows->Add(step));
  }
  return absl::OkStatus();
}

}  // namespace rill
