// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_DEVICE_SELECTOR_H_
#define RILL_SAMPLERS_PRIORITIZED_DEVICE_SELECTOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/prioritized/prioritized_selector.h"

namespace rill::samplers_internal {

// PrioritizedSelector::Create where options.device is not the CPU, once the
// numbers are checked. INVALID_ARGUMENT of kMaxInBuffer; FAILED_PRECONDITION
// where the program has no such device.
absl::StatusOr<std::unique_ptr<PrioritizedSelector>> MakeDeviceSelector(
    const PrioritizedOptions& options);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_DEVICE_SELECTOR_H_
