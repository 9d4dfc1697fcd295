// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_HINDSIGHT_RELABEL_H_
#define RILL_TRANSFORMS_UNITS_HINDSIGHT_RELABEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// Some rows get another goal, one that their trajectory did achieve, and the
// reward of having wanted that. Which rows, and whose goals, the unit plans
// (TorchRL's her_ratio and strategy); other rows stay as they are.
//
// In a relabelled row the desired goal (also the one below "next", if stored)
// becomes the achieved goal of its row of context. The reward becomes
// reward(goal that the row itself achieved, new goal). With `terminated` that
// flag is computed anew too, and done becomes terminated or truncated.
//
// Plan: rows empty; context[0] a row for each draw that is relabelled.
// Shapes: goals of any dtype and shape, achieved and desired the same; flags
//   bool [1].
// Thread-safety: immutable; the functions are called from the thread that reads
//   a batch, and from several at once where batches are read so.
// Source: Andrychowicz et al., "Hindsight experience replay", NeurIPS 2017.
//
// Example (HindsightRelabelTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto relabel, HindsightRelabel::Create(
//       {.reward = MinusOneUnlessEqual}));
class HindsightRelabel {
 public:
  // Goals [M, ...] that rows achieved and desired to what is made of them: M
  // rows of the leaf's dtype and shape, contiguous. M > 0. Both are the
  // caller's to read only. Of a batch on a device all three lie there: work
  // goes on the device's current stream (device/current_stream.h), need not
  // have happened on return, and its own memory is the function's to keep.
  using Function = std::function<absl::StatusOr<Tensor>(const Tensor& achieved,
                                                        const Tensor& desired)>;

  struct Options {
    std::string achieved_key = "next/achieved_goal";
    std::string desired_key = "desired_goal";
    Function reward = nullptr;  // Required.
    std::string reward_key = "next/reward";
    Function terminated = nullptr;  // None: flags stay.
    std::string terminated_key = "next/terminated";
    std::string truncated_key = "next/truncated";  // May be missing.
    std::string done_key = "next/done";            // May be missing.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_HINDSIGHT_RELABEL_H_
