// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_
#define RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/option_values.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

namespace transforms_internal {

class UnitWork;

// A frame is `outer` pieces of `piece` bytes; a stack of n frames is the first
// piece of each of its frames, then the second of each, ...
struct FramePieces {
  int64_t outer = 1;
  int64_t piece = 0;
  int64_t n = 1;
};
// Copies a frame to its place in a stack: piece i to to + i * n * piece.
void PutFrame(const std::byte* frame, const FramePieces& pieces, std::byte* to);
// The same of a frame of one value of `size` bytes.
void PutValue(const std::byte* value, int64_t size, const FramePieces& pieces,
              std::byte* to);

}  // namespace transforms_internal

// Frames are stored once and stacked when they are read: each of `keys` becomes
// the last N frames of its trajectory, oldest first, joined along a dimension.
// TorchRL's CatFrames, whose stacks an environment would have made.
//
// "next/<key>" becomes the frames of <key> that end with the row's own, and
// then its own: the stack of <key> one step later. <key> must be stored, but
// need not be stacked.
//
// A part of RowArithmetic, over single rows, slices or sequences.
//
// Shapes: leaves of any dtype; along `dim` N times as long, or with a new
//   dimension of N.
// Cost: a frame is read once for each draw whose rows need it, and copied into
//   each stack that it is in.
// Thread-safety: immutable.
class StackFrames {
 public:
  // The padding before a trajectory's first frame.
  enum class Padding : uint8_t {
    kSame,      // That frame.
    kConstant,  // `value`.
  };

  struct Options {
    int64_t num_frames = 1;              // N, in [1, 2^20]. 1 copies.
    std::vector<std::string> keys = {};  // At least one, each once.
    // A dimension of the result, from the back: -1 is the last. < 0, as leaves
    // are the same whatever the batch shape is.
    int dim = -1;
    // `dim` is a new dimension (TorchRL: UnsqueezeTransform, then CatFrames).
    bool new_dim = false;
    Padding padding = Padding::kSame;
    double value = 0;  // One of each key's dtype.
  };

  // INVALID_ARGUMENT, starting with `caller`, names the option.
  static absl::StatusOr<StackFrames> Create(
      const Options& options, absl::string_view caller = "StackFrames::Create");

  const Options& options() const { return options_; }
  // As Transform::option_values.
  OptionValues option_values() const;

  // The key of the frames before `key`'s: the root's.
  static std::string FrameKey(const std::string& key);

  struct Layout {
    Shape stack;  // Without the batch dimension.
    transforms_internal::FramePieces pieces;
  };
  // The layout of stacks of such frames. INVALID_ARGUMENT, starting with
  // `caller`, where there is no such dimension, or the stack is too large for a
  // shape.
  absl::StatusOr<Layout> LayoutOf(absl::string_view caller,
                                  absl::string_view key, DType dtype,
                                  const Shape& frame) const;
  // The spec of the stack of `key`. NOT_FOUND or INVALID_ARGUMENT where it
  // cannot be made of such rows.
  absl::StatusOr<LeafSpec> StackSpec(absl::string_view caller,
                                     const std::string& key,
                                     const TensorDictSpec& rows) const;
  // An element that pads, null for kSame. INVALID_ARGUMENT where the dtype has
  // no such value.
  absl::StatusOr<const std::byte*> PadOf(absl::string_view caller,
                                         absl::string_view key,
                                         DType dtype) const;

  // The rest is RowArithmetic's; `caller` starts the messages.

  // NOT_FOUND or INVALID_ARGUMENT where it cannot work on such rows.
  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const;
  bool IsStacked(absl::string_view key) const;
  // The leaves whose frames are needed of the rows before a draw / behind it,
  // where stacks of "next" leaves end behind their row.
  std::set<std::string> KeysBefore() const;
  std::set<std::string> KeysBehind() const;
  absl::Status ExtendSpec(absl::string_view caller, const TensorDictSpec& rows,
                          TensorDictSpec* batch) const;

  // Every stack is its frames, one behind the other: none is torn into pieces,
  // and none padded by a value.
  bool JoinsFrames(const TensorDictSpec& rows) const;
  // The leaves that the stacks of `key` are frames of, a frame each.
  std::vector<std::string> PartsOf(const std::string& key) const;
  // The rows that they are, stack after stack. `ends` are the plan's
  // kWindowEnds, null with `steps`; for the others see Input.
  void JoinedSlots(const SamplePlan& plan, const SamplePlan::Context& frames,
                   const SamplePlan::Context* steps,
                   const SamplePlan::Context* ends, int64_t num_steps,
                   const std::string& key, std::vector<Slot>* slots) const;

  // The rows of which stacks are made. `steps` is the plan's kStepsBehind and n
  // that of its windows; null and 1 where it has none: then `behind` is not
  // looked at, and ends is `rows`.
  struct Input {
    const SamplePlan* plan = nullptr;
    const SamplePlan::Context* frames = nullptr;  // kFramesBefore.
    const SamplePlan::Context* steps = nullptr;
    int64_t num_steps = 1;
    const TensorDict* rows = nullptr;    // Root leaves of the batch's rows.
    const TensorDict* before = nullptr;  // Of the rows of `frames`.
    const TensorDict* behind = nullptr;  // Of the rows of `steps`.
    const TensorDict* ends = nullptr;    // "next" leaves, a row of the batch.
  };
  absl::Status Apply(absl::string_view caller, const Input& input,
                     TensorDict* batch) const;
  // The same of leaves on a device; `rows` may have more rows behind.
  absl::Status Enqueue(absl::string_view caller, const Input& input,
                       transforms_internal::UnitWork* work,
                       TensorDict* batch) const;

 private:
  struct Frames;

  explicit StackFrames(const Options& options);

  absl::Status Stack(absl::string_view caller, size_t key, const Input& input,
                     TensorDict* batch) const;
  absl::Status EnqueueStack(absl::string_view caller, size_t key,
                            const Input& input,
                            transforms_internal::UnitWork* work,
                            TensorDict* batch) const;
  template <typename Fn>
  void ForEachFrame(const SamplePlan& plan, const SamplePlan::Context* steps,
                    int64_t num_steps, bool is_next, Fn fn) const;
  void Fill(const Input& input, const Frames& frames, const Layout& layout,
            const Tensor& stacks) const;

  Options options_;
  std::vector<std::string> frame_keys_;    // Of each key.
  std::array<Tensor, kNumDTypes> values_;  // Of padding, where there are any.
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_STACK_FRAMES_H_
