// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/run_row.h"

#include <vector>

namespace rill::async_dqn {

std::vector<RunFiles::Column> RunColumns() {
  return {
      {"frames", "progress/frames"},
      {"episodes", "progress/episodes"},
      {"mean_return", "train/mean_return"},
      {"evaluation", "evaluate/mean_return"},
      {"updates", "progress/updates"},
      {"weights", "progress/weights"},
      {"kills", "workers/kills"},
      {"restarts", "workers/restarts"},
      {"resident_mb", "system/resident_mb"},
      {"children_mb", "system/children_mb"},
      {"descriptors", "system/descriptors"},
      {"mappings", "system/mappings"},
      {"processes", "system/processes"},
      {"seconds", "time/seconds"},
      {"frames_per_second", "time/frames_per_second"},
  };
}

}  // namespace rill::async_dqn
