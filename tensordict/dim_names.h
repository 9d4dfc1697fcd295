// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_DIM_NAMES_H_
#define RILL_TENSORDICT_DIM_NAMES_H_

#include "absl/strings/string_view.h"

namespace rill {

// Names of batch dimensions (TensorDict::SetDimNames) that say how to read one.
// Collectors' and rollouts' batches are ["lanes", "time"], samples ["time"] or
// ["rows"].

// The rows are consecutive steps, and what ends a trajectory or a piece of one
// is marked: by flags, or by numbers that change.
inline constexpr absl::string_view kTimeName = "time";

// Neighbours have nothing to do with each other: single rows that were drawn,
// or windows that overlap.
inline constexpr absl::string_view kRowsName = "rows";

// One a lane of an environment, one a worker of a collector.
inline constexpr absl::string_view kLanesName = "lanes";
inline constexpr absl::string_view kWorkersName = "workers";

}  // namespace rill

#endif  // RILL_TENSORDICT_DIM_NAMES_H_
