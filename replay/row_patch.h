// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROW_PATCH_H_
#define RILL_REPLAY_ROW_PATCH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rill {

// How ReplayBuffer::UpdateIfPresent chooses among rows.
struct PatchOptions {
  // A stored leaf, int64, one value a row: the row's version. The patch holds
  // it too, and a row takes it only where that is not below the stored one.
  std::string version_key = "";
  bool require_newer = false;  // Only where it is above.
};

// The outcome of such a call.
struct PatchResult {
  // One a row of the patch; a row with neither is not there any more.
  std::vector<uint8_t> updated;
  std::vector<uint8_t> version_rejected;
  int64_t num_updated = 0;
};

}  // namespace rill

#endif  // RILL_REPLAY_ROW_PATCH_H_
