// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_ROW_SCAN_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_ROW_SCAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {

// Counts episodes, returns and policy versions of rows that come lane after
// lane, oldest first.
//
// An episode goes on while its id (collector/traj_ids, else episode) is the
// same and ends with next/done, next/terminated or next/truncated. Rows without
// ids have one episode at a time in a lane; rows without end flags end where
// the next id begins. The first episode of a lane that has lost older rows
// counts as cut, unless its first row has is_init. (Where producers take turns
// in such a lane, further episodes may have lost their beginning unseen.)
//
// Thread-safety: thread-compatible.
class RowScan {
 public:
  // For leaves for which `has_leaf` holds.
  explicit RowScan(absl::FunctionRef<bool(absl::string_view)> has_leaf);

  // The leaves that it needs. None: there is nothing to count.
  const std::vector<std::string>& keys() const { return keys_; }

  // The rows that follow are of another lane. `from_first_step`: no older row
  // was lost.
  void BeginLane(bool from_first_step);
  // Rows between the last ones and the next ones are missing.
  void Gap();
  // [n]. INVALID_ARGUMENT where a leaf is of another dtype or not one element a
  // row; a reward is then left out.
  absl::Status Add(const TensorDict& rows);
  // Puts what was counted into `facts`.
  void Finish(Facts* facts);

 private:
  struct Episode {
    int64_t steps = 0;
    double reward = 0;
    bool is_whole = false;  // Its first step is there.
  };
  void End(const Episode& episode);
  void EndLane();

  std::vector<std::string> keys_;
  std::vector<std::string> ends_;
  std::string id_, reward_, version_, init_;  // Empty: none.

  absl::flat_hash_map<int64_t, Episode> open_;
  bool next_is_whole_ = true;
  std::optional<int64_t> last_id_;
  Episodes episodes_;
  Spread returns_;
  bool has_returns_;
  std::optional<std::pair<int64_t, int64_t>> versions_;
  int64_t rows_ = 0;
};

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_ROW_SCAN_H_
