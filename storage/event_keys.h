// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_EVENT_KEYS_H_
#define RILL_STORAGE_EVENT_KEYS_H_

#include <string>
#include <vector>

#include "rill/specs/spec.h"

namespace rill {

// Which leaves of a batch the write events report (slots/write_observer.h). A
// key that the rows do not have leaves its span empty.
//
// Rows have to tell trajectories apart for whoever goes along them: units,
// Iterate and Query of a replay buffer refuse rows that have neither ends nor
// ids. `.ends = {}, .trajectories = {}` says that there is nothing to tell:
// each lane is one endless trajectory.
//
// Thread-safety: a value.
struct EventKeys {
  // A step ends its trajectory where any of these bool leaves [.., 1] is true.
  // A group's, "next/agents/done", may be [.., agents, 1]: any agent's end is
  // one. In the place of a "<..>/done" that rows do not have, its parts count:
  // "<..>/terminated" and "<..>/truncated".
  std::vector<std::string> ends = {"next/done"};
  // int64, [..] or [.., 1]: the first of these that the rows have. Ends count
  // beside it.
  std::vector<std::string> trajectories = {"collector/traj_ids", "episode"};
  std::string priority = "priority";              // float32, [.., 1].
  std::string policy_version = "policy_version";  // int64, [.., 1].

  bool is_endless() const { return ends.empty() && trajectories.empty(); }
  // The leaves of such rows that end trajectories.
  std::vector<std::string> EndsOf(const TensorDictSpec& rows) const;
  // They end trajectories or have ids.
  bool TellTrajectories(const TensorDictSpec& rows) const;
  // For an error where they do not: the leaves that were looked for, and what
  // to do.
  std::string WantText() const;
};

}  // namespace rill

#endif  // RILL_STORAGE_EVENT_KEYS_H_
