// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_FIND_FACTS_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_FIND_FACTS_H_

#include <cstdint>
#include <string>

#include "rill/tools/programs/inspect/saved.h"

namespace rill::inspect {

struct FactOptions {
  // Rows that are read for episodes, returns and policy versions: the newest of
  // each lane, as many of each.
  int64_t max_rows = int64_t{1} << 20;
  // Also the leaves of a storage's directory, with the extremes of the newest
  // rows: max_rows of them, and where that is not "all" 64 MiB at most.
  bool leaves = false;
};

// Adds the facts of stored rows to what OpenSaved found at `path`, and to its
// parts. Rows are in storage directories (while they are written too), saved
// storages, saved buffers (which get their storage's) and positions, and
// TorchRL's buffers. Parts that cannot be read go into `damage`, and the rest
// is there.
//
// A directory that is written is looked at without its lock; rows that are
// overwritten meanwhile are left out.
// Thread-safety: thread-safe for different `saved`.
// Cost: O(lanes + rows that are read).
void AddFacts(const std::string& path, const FactOptions& options,
              Saved* saved);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_FIND_FACTS_H_
