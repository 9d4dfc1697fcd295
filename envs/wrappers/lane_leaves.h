// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
#define RILL_ENVS_WRAPPERS_LANE_LEAVES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/envs/env.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// Leaves of a step of `env`, resolved, for an Env that owns another: those of
// the root, or the action (the first) and those below next. The root and next
// list the same leaves in the same order: that of the keys; next's rewards
// stand behind them.
// Thread-safety: thread-compatible. Valid while the dictionary holds the
// tensors.
class LaneLeaves {
 public:
  LaneLeaves() = default;
  // `caller` starts the messages of errors: "FrameSkip::Step".
  static absl::StatusOr<LaneLeaves> OfRoot(std::string caller, const Env& env);
  static absl::StatusOr<LaneLeaves> OfStep(std::string caller, const Env& env);

  // INVALID_ARGUMENT names a leaf that is missing, of another layout, or that
  // cannot be filled in place.
  absl::Status Bind(const TensorDict& dict);

  size_t size() const { return keys_.size(); }
  const BoundLeaf& operator[](size_t i) const { return rows_[i]; }
  // The place of a key, which is there.
  size_t Find(absl::string_view key) const;

 private:
  static absl::StatusOr<LaneLeaves> Create(std::string caller, const Env& env,
                                           bool is_root);

  std::string caller_;
  int64_t lanes_ = 0;
  std::vector<std::string> keys_;
  BoundRows rows_;
};

// The row of a lane, of two leaves of one layout.
void CopyLane(const BoundLeaf& from, const BoundLeaf& to, int64_t lane);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
