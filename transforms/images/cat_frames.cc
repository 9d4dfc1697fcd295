// SPDX-License-Identifier: Apache-2.0
// The stack along a dimension interleaves pieces of the frames: those of the
// dimensions from `dim` on are contiguous in a frame (Pieces). For dim = the
// first dimension of a frame there is one piece, and a stack is its frames side
// by side.
#include "rill/transforms/images/cat_frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::AddWritten;
using transforms_internal::FramePieces;
using transforms_internal::PutFrame;
using transforms_internal::PutValue;
using transforms_internal::ReadLeaf;

constexpr absl::string_view kCreate = "CatFrames::Create";
constexpr absl::string_view kForward = "CatFrames::Forward";
constexpr absl::string_view kPlanSteps = "CatFrames::PlanSteps";

// Leaves of steps, for each key of the root, in the order of PlanKey.
enum StepLeaf : size_t { kFrame, kStack, kNextFrame, kNextStack, kStepLeaves };

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

FramePieces PiecesOf(DType dtype, const Shape& frame,
                     const StackFrames::Options& options) {
  const int at = frame.rank() + options.dim;
  return {.outer = frame.Prefix(at).num_elements(),
          .piece = frame.Suffix(at).num_elements() * DTypeSize(dtype),
          .n = options.num_frames};
}

// The stack one step later, but for the newest frame. The oldest frame is the
// first of each piece, so the others of a piece move as one run.
void ShiftFrames(const FramePieces& pieces, const std::byte* from,
                 std::byte* to) {
  const int64_t width = pieces.n * pieces.piece;
  for (int64_t i = 0; i < pieces.outer; ++i, from += width, to += width) {
    std::memcpy(to, from + pieces.piece,
                static_cast<size_t>(width - pieces.piece));
  }
}

// The first row of each row's episode in its line; rows are [lines x length].
// One pass: a row that does not begin an episode has the answer of the row
// before.
void FindFirstRows(int64_t length, absl::Span<const bool> done,
                   absl::Span<int64_t> first) {
  for (size_t row = 0; row < done.size(); ++row) {
    const auto now = static_cast<int64_t>(row);
    const bool begins = now % length == 0 || done[row - 1];
    first[row] = begins ? now : first[row - 1];
  }
}

absl::Status CheckFrame(absl::string_view caller, absl::string_view key,
                        const LeafSpec& frame) {
  if (frame.shape.num_elements() > 0) return absl::OkStatus();
  return transforms_internal::Misfit(caller, key, frame,
                                     "frames of at least one element");
}

}  // namespace

CatFrames::CatFrames(const Options& options, StackFrames frames)
    : options_(options),
      frames_(std::move(frames)),
      spare_(2 * options.in_keys.size() + 2),
      device_work_(2 * options.in_keys.size()) {}

absl::StatusOr<std::unique_ptr<CatFrames>> CatFrames::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(
      RowwiseTransform::CheckRows(kCreate, {.map = nullptr,
                                            .in_keys = options.in_keys,
                                            .out_keys = options.out_keys}));
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key)) << kCreate << ": done_key";
  RILL_ASSIGN_OR_RETURN(StackFrames frames,
                        StackFrames::Create({.num_frames = options.num_frames,
                                             .keys = options.in_keys,
                                             .dim = options.dim,
                                             .padding = options.padding,
                                             .value = options.padding_value},
                                            kCreate));
  return absl::WrapUnique(new CatFrames(options, std::move(frames)));
}

OptionValues CatFrames::option_values() const {
  return OptionValues()
      .Int("num_frames", options_.num_frames)
      .Int("dim", options_.dim)
      .Texts("in_keys", options_.in_keys)
      .Texts("out_keys", options_.out_keys)
      .Choice("padding",
              options_.padding == Padding::kSame ? "kSame" : "kConstant")
      .Double("padding_value", options_.padding_value)
      .Text("done_key", options_.done_key);
}

absl::StatusOr<StackFrames::Options> CatFrames::AsStackFrames() const {
  if (!options_.out_keys.empty() && options_.out_keys != options_.in_keys) {
    return InvalidArgument(
        "CatFrames::AsStackFrames: out_keys: got others than in_keys, want the "
        "same: StackFrames stacks leaves in their place");
  }
  StackFrames::Options stack = frames_.options();
  // A unit's stack of <key> does not imply that of "next/<key>", as it does
  // beside an environment.
  for (const std::string& key : options_.in_keys) {
    const std::string next = absl::StrCat("next/", key);
    if (IsNext(key) || absl::c_linear_search(stack.keys, next)) continue;
    stack.keys.push_back(next);
  }
  return stack;
}

// --- Batches -----------------------------------------------------------------

absl::StatusOr<Tensor> CatFrames::Stack(const std::string& key,
                                        absl::Span<const int64_t> first,
                                        const TensorDict& batch) const {
  RILL_ASSIGN_OR_RETURN(const Tensor newest, ReadLeaf(kForward, key, batch));
  RILL_ASSIGN_OR_RETURN(const Tensor frames,
                        ReadLeaf(kForward, StackFrames::FrameKey(key),
                                 newest.dtype(), newest.shape(), batch));
  const DType dtype = newest.dtype();
  const Shape frame = newest.shape().Suffix(batch.batch_shape().rank());
  RILL_RETURN_IF_ERROR(
      CheckFrame(kForward, key, LeafSpec::Unbounded(dtype, frame)));
  RILL_ASSIGN_OR_RETURN(const StackFrames::Layout layout,
                        frames_.LayoutOf(kForward, key, dtype, frame));
  RILL_ASSIGN_OR_RETURN(const std::byte* const pad,
                        frames_.PadOf(kForward, key, dtype));
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      LeafSpec::Unbounded(dtype, layout.stack).FullShape(batch.batch_shape()));
  RILL_ASSIGN_OR_RETURN(Tensor made, spare_.Take(dtype, shape));
  if (made.num_elements() == 0) return made;
  const int64_t n = options_.num_frames;
  const FramePieces& pieces = layout.pieces;
  const int64_t width = frame.num_elements() * DTypeSize(dtype);
  // 1 for "next/<key>": its stack has its own frame last, and the N - 1 frames
  // of <key> up to the row's own before it.
  const int64_t ahead = IsNext(key) ? 1 : 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    std::byte* to = made.raw_data() + row * n * width;
    for (int64_t place = 0; place < n - ahead; ++place, to += pieces.piece) {
      // `from` is the row of <key> whose frame takes the place. One before the
      // episode pads: by the value, or by the episode's first frame.
      const int64_t from = row + ahead - (n - 1) + place;
      if (from < first[i] && pad != nullptr) {
        PutValue(pad, DTypeSize(dtype), pieces, to);
      } else {
        PutFrame(frames.raw_data() + std::max(from, first[i]) * width, pieces,
                 to);
      }
    }
    if (ahead > 0) PutFrame(newest.raw_data() + row * width, pieces, to);
  }
  return made;
}

absl::Status CatFrames::Forward(TensorDict* batch,
                                TensorDict* /*state*/) const {
  const Shape& shape = batch->batch_shape();
  RILL_ASSIGN_OR_RETURN(const int64_t steps,
                        transforms_internal::NumSteps(kForward, shape));
  RILL_RETURN_IF_ERROR(transforms_internal::CheckTimeIsLast(kForward, *batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor stops,
      transforms_internal::ReadStops(kForward, options_.done_key, *batch));
  RILL_ASSIGN_OR_RETURN(const Tensor rows, spare_.Take(DType::kInt64, shape));
  const auto count = static_cast<size_t>(stops.num_elements());
  const auto first = absl::MakeSpan(rows.data<int64_t>(), count);
  FindFirstRows(steps, absl::MakeConstSpan(stops.data<bool>(), count), first);
  // All stacks are made before one is set: a key's stack may replace a leaf
  // that another key's stack is made of.
  absl::InlinedVector<Tensor, 8> stacks;
  for (const std::string& key : options_.in_keys) {
    RILL_ASSIGN_OR_RETURN(stacks.emplace_back(), Stack(key, first, *batch));
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    RILL_RETURN_IF_ERROR(batch->Set(OutKey(i), std::move(stacks[i])));
  }
  return absl::OkStatus();
}

absl::StatusOr<LeafSpec> CatFrames::StackSpec(
    absl::string_view caller, const std::string& key,
    const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(const LeafSpec stack,
                        frames_.StackSpec(caller, key, spec));
  RILL_RETURN_IF_ERROR(CheckFrame(caller, key, *spec.Find(key)));
  return stack;
}

absl::StatusOr<TensorDictSpec> CatFrames::ForwardSpec(
    const TensorDictSpec& spec) const {
  constexpr absl::string_view kCaller = "CatFrames::ForwardSpec";
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckHasEnds(kCaller, options_.done_key, spec));
  TensorDictSpec after = spec;
  for (size_t i = 0; i < options_.in_keys.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec stack,
                          StackSpec(kCaller, options_.in_keys[i], spec));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
        kCaller, options_.in_keys[i], options_.done_key, spec));
    RILL_RETURN_IF_ERROR(after.Set(OutKey(i), stack));
  }
  return after;
}

// --- Steps -------------------------------------------------------------------

absl::Status CatFrames::PlanKey(size_t i, const TensorDictSpec& step,
                                StepPlan* plan) const {
  const std::string& key = options_.in_keys[i];
  for (const absl::string_view prefix : {"", "next/"}) {
    const std::string from = absl::StrCat(prefix, key);
    const std::string to = absl::StrCat(prefix, OutKey(i));
    RILL_ASSIGN_OR_RETURN(const LeafSpec stack,
                          StackSpec(kPlanSteps, from, step));
    // Read and written leaf of each side: the four places of StepLeaf.
    AddLeaf(from, *step.Find(from), LeafUse::kRead, plan);
    RILL_RETURN_IF_ERROR(AddWritten(to, stack, plan));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepPlan> CatFrames::PlanSteps(
    const TensorDictSpec& step) const {
  StepPlan plan = {.spec = step};
  for (size_t i = 0; i < options_.in_keys.size(); ++i) {
    const std::string& key = options_.in_keys[i];
    if (!IsNext(key)) {
      RILL_RETURN_IF_ERROR(PlanKey(i, step, &plan));
      continue;
    }
    // "next/<key>" has no leaves of its own beside <key>: these are there
    // already.
    const auto root =
        absl::c_find(options_.in_keys, StackFrames::FrameKey(key));
    if (root != options_.in_keys.end() &&
        OutKey(i) ==
            absl::StrCat("next/", OutKey(static_cast<size_t>(
                                      root - options_.in_keys.begin())))) {
      continue;
    }
    return InvalidArgument(kPlanSteps, ": \"", key,
                           "\": got it alone or with another name, want \"",
                           StackFrames::FrameKey(key),
                           "\", which stands for both beside an environment");
  }
  return plan;
}

absl::Status CatFrames::OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                                TensorDict* /*state*/) const {
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const BoundLeaf& frame = leaves[kFrame];
    const BoundLeaf& stack = leaves[kStack];
    const FramePieces pieces =
        PiecesOf(frame.dtype, frame.shape, frames_.options());
    RILL_ASSIGN_OR_RETURN(const std::byte* const pad,
                          frames_.PadOf("CatFrames::OnReset", "", frame.dtype));
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      const auto lane = static_cast<int64_t>(i);
      const std::byte* const from = frame.data + lane * frame.width;
      std::byte* to = stack.data + lane * stack.width;
      // The oldest N - 1 places pad, the newest is the frame of the reset.
      for (int64_t place = 0; place + 1 < pieces.n; ++place) {
        if (pad == nullptr) {
          PutFrame(from, pieces, to);
        } else {
          PutValue(pad, DTypeSize(frame.dtype), pieces, to);
        }
        to += pieces.piece;
      }
      PutFrame(from, pieces, to);
    }
  }
  return absl::OkStatus();
}

absl::Status CatFrames::OnStep(Leaves leaves, TensorDict* /*state*/) const {
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const BoundLeaf& stack = leaves[kStack];
    const BoundLeaf& frame = leaves[kNextFrame];
    const BoundLeaf& next = leaves[kNextStack];
    const FramePieces pieces =
        PiecesOf(frame.dtype, frame.shape, frames_.options());
    for (int64_t lane = 0; lane < next.rows; ++lane) {
      std::byte* const to = next.data + lane * next.width;
      // The root's stack is the one before this step, since next is carried
      // over to the root.
      ShiftFrames(pieces, stack.data + lane * stack.width, to);
      PutFrame(frame.data + lane * frame.width, pieces,
               to + (pieces.n - 1) * pieces.piece);
    }
  }
  return absl::OkStatus();
}

// --- Steps on a device -------------------------------------------------------

absl::Status CatFrames::OnDeviceReset(const Call& call, Tensors leaves,
                                      TensorDict* /*state*/) const {
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const Tensor& frame = leaves[kFrame];
    const FramePieces pieces =
        PiecesOf(frame.dtype(), frame.shape().Suffix(1), frames_.options());
    RILL_ASSIGN_OR_RETURN(
        const std::byte* const pad,
        frames_.PadOf("CatFrames::OnReset", "", frame.dtype()));
    RILL_RETURN_IF_ERROR(transforms_internal::BeginStack(
        {.outer = pieces.outer, .n = pieces.n}, frame, pad, leaves[kStack],
        call, &device_work_));
  }
  return absl::OkStatus();
}

absl::Status CatFrames::OnDeviceStep(const Call& call, Tensors leaves,
                                     TensorDict* /*state*/) const {
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const Tensor& frame = leaves[kNextFrame];
    const FramePieces pieces =
        PiecesOf(frame.dtype(), frame.shape().Suffix(1), frames_.options());
    RILL_RETURN_IF_ERROR(transforms_internal::PushFrame(
        {.outer = pieces.outer, .n = pieces.n}, leaves[kStack], frame,
        leaves[kNextStack], call));
  }
  return absl::OkStatus();
}

}  // namespace rill
