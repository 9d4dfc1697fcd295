// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_
#define RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// Frames are stored once and stacked when they are read: each of `keys` becomes
// the last N frames of its trajectory, oldest first, joined along a dimension.
// TorchRL's CatFrames, whose stacks an environment would have made.
//
// "next/<key>" becomes the frames of <key> that end with the row's own, and
// then its own: what <key> will be one step later. <key> need not be stacked
// itself, but be stored.
//
// Plan: rows empty; context[0] the N - 1 rows before each draw, oldest first;
//   mask 0 where there was none, the row is then the trajectory's first.
// Shapes: leaves of any dtype; along `dim` N times as long, or with a new
//   dimension of N.
// Cost: one copy of each frame; frames are read N times, once for each row.
//
// Example (StackFramesTest.Example runs it): channels first, as images are.
//   RILL_ASSIGN_OR_RETURN(auto frames, StackFrames::Create(
//       {.num_frames = 4, .keys = {"pixels", "next/pixels"}, .dim = -3}));
class StackFrames {
 public:
  // What stands before a trajectory's first frame.
  enum class Padding : uint8_t {
    kSame,      // That frame.
    kConstant,  // `value`.
  };

  struct Options {
    int64_t num_frames = 1;              // N, in [1, 2^20]. 1 copies.
    std::vector<std::string> keys = {};  // At least one, each once.
    // Of the result, from the back: -1 is the last. < 0, as leaves are the
    // same whatever the batch shape is.
    int dim = -1;
    // `dim` is a new dimension (TorchRL: UnsqueezeTransform, then CatFrames).
    bool new_dim = false;
    Padding padding = Padding::kSame;
    double value = 0;  // One of each key's dtype.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_
