// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/unit_transform.h"

#include "rill/base/status_macros.h"

namespace rill {

absl::Status UnitTransform::Enqueue(const SamplePlan& /*plan*/,
                                    const TensorDict& /*rows*/,
                                    absl::Span<const TensorDict> /*context*/,
                                    StreamUploads* uploads,
                                    TensorDict* /*batch*/) const {
  return FailedPrecondition(
      name(), "::Enqueue: got rows on ", uploads->stream().device().ToString(),
      ", want rows in host memory: this unit has no arithmetic for devices; "
      "create the storage without Options::device, and set that of the buffer");
}

}  // namespace rill
