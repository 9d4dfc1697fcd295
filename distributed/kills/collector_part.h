// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_COLLECTOR_PART_H_
#define RILL_DISTRIBUTED_KILLS_COLLECTOR_PART_H_

#include <memory>

#include "absl/status/status.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// Writes batches of 1 to 16 rows, and looks for newer weights.
// Thread-safety: one call a process. Cost: runs until it is stopped.
absl::Status RunCollector(std::shared_ptr<Transport> transport,
                          const PartOptions& options);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_COLLECTOR_PART_H_
