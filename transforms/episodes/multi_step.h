// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_MULTI_STEP_H_
#define RILL_TRANSFORMS_EPISODES_MULTI_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/specs/spec.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// A row becomes the n steps that begin with it, before it is written. The
// reward is r_0 + gamma r_1 + ... over the k <= n steps of its window. All else
// below "next", the flags too, is that of the last of them. A window ends at a
// step that is done or terminated. TorchRL's MultiStepTransform.
//
// Which one to take: units/n_step_returns.h does the same when rows are read.
// It holds nothing back, and n may change under a stored buffer: prefer it.
// This one stores what is learned from: for readers that know nothing of
// windows, and where rows of a lane are not stored in order.
//
// A row is written when its window is whole. Until then it is held back in the
// state, at most n - 1 rows a lane. A batch of several lanes stays [lanes,
// time], so they are written equally far: a batch may come out longer, shorter
// or empty. Rows that are held when a run ends are never written. Let the same
// lanes come together each time: a batch of lanes that hold unequally many rows
// is refused.
//
// In a ReplayBuffer (lane_transform.h):
// - Rows are held by lane of the storage, WriteInfo::first_lane counted in. So
//   asynchronous workers write [1, T] each; `lanes` is the storage's.
// - Cut ends the windows of its lanes as done and, where rows have it, as
//   "next/truncated". The rows are written with the lane's next batch.
// - Clear forgets held rows.
//
// Adds: steps_key int64 [.., 1], k; gamma_key float32 [.., 1], gamma^k.
// Shapes: batches [any of the lanes, T]; [T] where lanes is 1. Inverse alone
//   takes lanes from 0 on.
//   Rewards float32 or float64 of any shape; flags bool [1].
// State: "held" int64 [lanes], rows held of each lane; "rows/...", each leaf as
//   [lanes, n - 1, ...], of which the first "held" count. One that was saved
//   with one count for all lanes opens in a ReplayBuffer.
// Numerics: those of NStepReturns, bit for bit.
// Errors: INVALID_ARGUMENT where the batch has other leaves than `rows`, lanes
//   that are not below `lanes` or hold unequally many rows, or a value a row that
//   is no tensor.
// Differs from TorchRL: flags follow the window. A target so never bootstraps
//   through a terminal state. n - 1 rows are held, not n, and ends
//   let rows go at once. "original_reward" and "nonterminal" are not kept.
// Thread-safety: immutable.
// Cost: copies each row once, and held ones twice; O(rows x n) sums. A batch of
//   some of the lanes copies what the others hold, too. Once
//   batches and states come and go, tensors are used again, and dictionaries
//   where as many rows come out.
//
// Example (MultiStepTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto multi_step,
//       MultiStep::Create({.n_steps = 3, .gamma = 0.99, .rows = spec}));
struct MultiStep {
  struct Options {
    int64_t n_steps = 1;       // In [1, 2^20].
    double gamma = 0.99;       // In [0, 1].
    TensorDictSpec rows = {};  // What is written; the state needs to know.
    int64_t lanes = 1;         // > 0, the storage's.
    std::vector<std::string> reward_keys = {"next/reward"};
    // Where rows do not have it, "terminated" and "truncated" beside it count.
    std::string done_key = "next/done";
    // Rows may be without it.
    std::string terminated_key = "next/terminated";
    std::string steps_key = "steps_to_next_obs";
    std::string gamma_key = "gamma";
  };

  // INVALID_ARGUMENT or NOT_FOUND name the option, or the leaf of `rows`; so
  // does a reward of a group with flags of its own that are not those of
  // done_key.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_MULTI_STEP_H_
