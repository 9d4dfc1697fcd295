// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_ROW_COMMITS_H_
#define RILL_STORAGE_ON_DISK_ROW_COMMITS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// Says which rows are whole before and after every change of their bytes, so
// that a process that is killed on the way leaves whole rows.
// Thread-safety: thread-compatible.
class RowCommits {
 public:
  virtual ~RowCommits() = default;

  // How many appends may be announced and not committed.
  virtual size_t max_appends_in_flight() const = 0;
  // DEADLINE_EXCEEDED, and nothing has changed, where readers hold rows that
  // would go.
  virtual absl::Status Announce(const LaneSteps& append) = 0;
  virtual void Commit(const LaneSteps& append) = 0;
  // Around a change of the live rows that is no append. BeginDiscard goes from
  // `now` to `kept`; an error changes nothing. EndDiscard goes to `live`, and
  // all other rows read as zeros then; nobody may be reading those. Killed on
  // the way, the next owner zeroes all that is not live. No-op where there are
  // no files yet.
  virtual absl::Status BeginDiscard(const LaneRings& now,
                                    const LaneRings& kept) = 0;
  virtual void EndDiscard(const LaneRings& live) = 0;
  virtual bool MayBeginInPlace() const = 0;
  virtual void BeginInPlace() = 0;
  virtual void EndInPlace() = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_ROW_COMMITS_H_
