// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_ARGUMENTS_H_
#define RILL_SAMPLERS_ARGUMENTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

// The checks that every sampler makes of its arguments, so that all refuse the
// same with the same words. `sampler` starts the message.
// Thread-safety: immutable.

// INVALID_ARGUMENT unless in [1, max_batch_size].
absl::Status CheckBatchSize(absl::string_view sampler, int64_t batch_size,
                            int64_t max_batch_size);

// INVALID_ARGUMENT unless there is one priority a draw, each finite and >= 0.
absl::Status CheckPriorities(absl::string_view sampler,
                             absl::Span<const Draw> draws,
                             absl::Span<const float> priorities);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_ARGUMENTS_H_
