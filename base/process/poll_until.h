// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_PROCESS_POLL_UNTIL_H_
#define RILL_BASE_PROCESS_POLL_UNTIL_H_

#include <poll.h>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace rill {

// poll(2), which signals do not interrupt, until `deadline` (base/clock.h's
// Steady); one in the past asks only. The number of entries with events, 0
// where there were none; -1 where poll fails, at once, and errno says why.
// Thread-safety: thread-safe.
int PollUntil(absl::Span<pollfd> entries, absl::Time deadline);

}  // namespace rill

#endif  // RILL_BASE_PROCESS_POLL_UNTIL_H_
