// SPDX-License-Identifier: Apache-2.0
// The stack along a dimension interleaves pieces of the frames: those of the
// dimensions from `dim` on are contiguous in a frame (Pieces). For dim = the
// first dimension of a frame there is one piece, and a stack is its frames side
// by side.
#include "rill/transforms/images/cat_frames.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {
namespace {

using transforms_internal::FindSpec;
using transforms_internal::ReadLeaf;

constexpr absl::string_view kCreate = "CatFrames::Create";
constexpr absl::string_view kForward = "CatFrames::Forward";
constexpr absl::string_view kPlanSteps = "CatFrames::PlanSteps";
constexpr int64_t kMaxFrames = int64_t{1} << 20;

// Leaves of steps, for each key of the root, in the order of PlanKey.
enum StepLeaf : size_t { kFrame, kStack, kNextFrame, kNextStack, kStepLeaves };

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

// The key of the frames before `key`'s: the root's.
std::string FrameKey(const std::string& key) {
  return IsNext(key) ? key.substr(5) : key;
}

// A frame is `outer` pieces; a stack is the first piece of each of its frames,
// then the second of each, ...
struct Pieces {
  int64_t outer = 0;
  size_t bytes = 0;  // Of a piece.
  int64_t frames = 0;

  Pieces(DType dtype, const Shape& frame, int dim, int64_t num_frames)
      : outer(frame.Prefix(frame.rank() + dim).num_elements()),
        bytes(static_cast<size_t>(
            frame.Suffix(frame.rank() + dim).num_elements() *
            DTypeSize(dtype))),
        frames(num_frames) {}

  // The place of frame `place` in a piece of the stack.
  std::byte* At(std::byte* stack, int64_t piece, int64_t place) const {
    return stack + static_cast<size_t>(piece * frames + place) * bytes;
  }

  void Put(const std::byte* frame, int64_t place, std::byte* stack) const {
    for (int64_t i = 0; i < outer; ++i) {
      std::memcpy(At(stack, i, place), frame + static_cast<size_t>(i) * bytes,
                  bytes);
    }
  }

  // The same of a frame of one value of `size` bytes.
  void Fill(const std::byte* value, size_t size, int64_t place,
            std::byte* stack) const {
    for (int64_t i = 0; i < outer; ++i) {
      std::byte* const piece = At(stack, i, place);
      for (size_t at = 0; at < bytes; at += size) {
        std::memcpy(piece + at, value, size);
      }
    }
  }

  // The stack one step later, but for the newest frame. The oldest frame is the
  // first of each piece, so the others of a piece move as one run.
  void Shift(const std::byte* from, std::byte* to) const {
    const auto width = static_cast<size_t>(frames) * bytes;
    for (int64_t i = 0; i < outer; ++i, from += width, to += width) {
      std::memcpy(to, from + bytes, width - bytes);
    }
  }
};

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

absl::Status Named(absl::string_view caller, absl::string_view key,
                   absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": \"", key, "\": ", what));
}

// The shape of stacks of such frames.
absl::StatusOr<Shape> StackShape(absl::string_view caller,
                                 absl::string_view key, const Shape& frame,
                                 const CatFrames::Options& options) {
  const int at = frame.rank() + options.dim;
  if (at < 0) {
    return Named(
        caller, key,
        absl::StrCat("got frames ", frame.ToString(), ", want the dimension ",
                     options.dim, "; unsqueeze the leaf before"));
  }
  std::array<int64_t, Shape::kMaxRank> sizes = {};
  absl::c_copy(frame.sizes(), sizes.begin());
  int64_t& joined = sizes[static_cast<size_t>(at)];
  // An overflow makes a size that Create refuses.
  if (__builtin_mul_overflow(joined, options.num_frames, &joined)) joined = -1;
  absl::StatusOr<Shape> stack = Shape::Create(
      absl::MakeConstSpan(sizes).first(static_cast<size_t>(frame.rank())));
  if (stack.ok()) return stack;
  return Named(caller, key,
               absl::StrCat("got frames ", frame.ToString(), ", want ",
                            options.num_frames,
                            " of them inside the limits of a shape"));
}

}  // namespace

CatFrames::CatFrames(const Options& options)
    : options_(options), spare_(2 * options.in_keys.size() + 2) {
  if (options.padding == Padding::kSame) return;
  // Made once: a pad is one element of each dtype that has the value.
  for (int i = 0; i < kNumDTypes; ++i) {
    absl::StatusOr<Tensor> pad = transforms_internal::FillValue(
        kCreate, "", options.padding_value, static_cast<DType>(i), {});
    if (pad.ok()) pads_[static_cast<size_t>(i)] = *std::move(pad);
  }
}

absl::StatusOr<std::unique_ptr<CatFrames>> CatFrames::Create(
    const Options& options) {
  if (options.num_frames < 1 || options.num_frames > kMaxFrames) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": num_frames: got ", options.num_frames,
                     ", want 1 .. ", kMaxFrames));
  }
  if (options.dim >= 0 || options.dim < -Shape::kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(kCreate, ": dim: got ",
                                                   options.dim, ", want ",
                                                   -Shape::kMaxRank, " .. -1"));
  }
  RILL_RETURN_IF_ERROR(
      RowwiseTransform::CheckRows(kCreate, {.map = nullptr,
                                            .in_keys = options.in_keys,
                                            .out_keys = options.out_keys}));
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key)) << kCreate << ": done_key";
  return absl::WrapUnique(new CatFrames(options));
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
    return absl::InvalidArgumentError(
        "CatFrames::AsStackFrames: out_keys: got others than in_keys, want the "
        "same: StackFrames stacks leaves in their place");
  }
  StackFrames::Options stack = {.num_frames = options_.num_frames,
                                .keys = options_.in_keys,
                                .dim = options_.dim,
                                .padding = options_.padding,
                                .value = options_.padding_value};
  // A unit's stack of <key> does not imply that of "next/<key>", as it does
  // beside an environment.
  for (const std::string& key : options_.in_keys) {
    const std::string next = absl::StrCat("next/", key);
    if (IsNext(key) || absl::c_linear_search(stack.keys, next)) continue;
    stack.keys.push_back(next);
  }
  return stack;
}

absl::StatusOr<const std::byte*> CatFrames::PadOf(absl::string_view caller,
                                                  absl::string_view key,
                                                  DType dtype) const {
  if (options_.padding == Padding::kSame) return nullptr;
  const Tensor& pad = pads_[static_cast<size_t>(dtype)];
  if (pad.is_valid()) return pad.raw_data();
  return transforms_internal::FillValue(caller, key, options_.padding_value,
                                        dtype, {})
      .status();
}

// The frames' domain where it is the same for all elements and the same in both
// leaves: a stack of "next/<key>" has frames of <key> too.
absl::StatusOr<LeafSpec> CatFrames::StackSpec(
    absl::string_view caller, const std::string& key,
    const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(LeafSpec frame, FindSpec(caller, key, spec));
  RILL_ASSIGN_OR_RETURN(const LeafSpec before,
                        FindSpec(caller, FrameKey(key), spec));
  if (before.dtype != frame.dtype || !(before.shape == frame.shape)) {
    return Named(caller, key,
                 absl::StrCat("got ", frame.ToString(), ", want \"",
                              FrameKey(key), "\"'s ", before.ToString()));
  }
  RILL_ASSIGN_OR_RETURN(const Shape stack,
                        StackShape(caller, key, frame.shape, options_));
  const bool is_same = frame == before;
  if (options_.padding == Padding::kConstant) {
    RILL_ASSIGN_OR_RETURN(frame,
                          transforms_internal::WithFillValue(
                              caller, key, options_.padding_value, frame));
  }
  using Domain = LeafSpec::Domain;
  const bool is_of_elements = frame.domain == Domain::kBounded ||
                              frame.domain == Domain::kBinary ||
                              frame.domain == Domain::kCategorical;
  if (!is_same || !is_of_elements || frame.tables != nullptr) {
    return LeafSpec::Unbounded(frame.dtype, stack);
  }
  // Bounds and numbers of options are those of an element, so the new shape
  // keeps them.
  frame.shape = stack;
  return frame;
}

// --- Batches -----------------------------------------------------------------

absl::StatusOr<Tensor> CatFrames::Stack(const std::string& key,
                                        absl::Span<const int64_t> first,
                                        const TensorDict& batch) const {
  RILL_ASSIGN_OR_RETURN(const Tensor newest, ReadLeaf(kForward, key, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor frames,
      ReadLeaf(kForward, FrameKey(key), newest.dtype(), newest.shape(), batch));
  const DType dtype = newest.dtype();
  const Shape frame = newest.shape().Suffix(batch.batch_shape().rank());
  RILL_ASSIGN_OR_RETURN(const Shape stack,
                        StackShape(kForward, key, frame, options_));
  RILL_ASSIGN_OR_RETURN(const std::byte* const pad,
                        PadOf(kForward, key, dtype));
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      LeafSpec::Unbounded(dtype, stack).FullShape(batch.batch_shape()));
  RILL_ASSIGN_OR_RETURN(Tensor made, spare_.Take(dtype, shape));
  if (made.num_elements() == 0) return made;
  const int64_t n = options_.num_frames;
  const Pieces pieces(dtype, frame, options_.dim, n);
  const int64_t width = frame.num_elements() * DTypeSize(dtype);
  // 1 for "next/<key>": its stack has its own frame last, and the N - 1 frames
  // of <key> up to the row's own before it.
  const int64_t ahead = IsNext(key) ? 1 : 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    std::byte* const to = made.raw_data() + row * n * width;
    for (int64_t place = 0; place < n - ahead; ++place) {
      // `from` is the row of <key> whose frame takes the place. One before the
      // episode pads: by the value, or by the episode's first frame.
      const int64_t from = row + ahead - (n - 1) + place;
      if (from < first[i] && pad != nullptr) {
        pieces.Fill(pad, static_cast<size_t>(DTypeSize(dtype)), place, to);
      } else {
        pieces.Put(frames.raw_data() + std::max(from, first[i]) * width, place,
                   to);
      }
    }
    if (ahead > 0) pieces.Put(newest.raw_data() + row * width, n - 1, to);
  }
  return made;
}

absl::Status CatFrames::Forward(TensorDict* batch,
                                TensorDict* /*state*/) const {
  const Shape& shape = batch->batch_shape();
  if (shape.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        kForward, ": got batch shape [], want [..., T], in order of time"));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor done,
                        ReadLeaf(kForward, options_.done_key, DType::kBool,
                                 shape.Concat({1}), *batch));
  RILL_ASSIGN_OR_RETURN(const Tensor rows, spare_.Take(DType::kInt64, shape));
  const auto count = static_cast<size_t>(done.num_elements());
  const auto first = absl::MakeSpan(rows.data<int64_t>(), count);
  FindFirstRows(shape[shape.rank() - 1],
                absl::MakeConstSpan(done.data<bool>(), count), first);
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

absl::StatusOr<TensorDictSpec> CatFrames::ForwardSpec(
    const TensorDictSpec& spec) const {
  constexpr absl::string_view kCaller = "CatFrames::ForwardSpec";
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckIsFlag(kCaller, options_.done_key, spec));
  TensorDictSpec after = spec;
  for (size_t i = 0; i < options_.in_keys.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec stack,
                          StackSpec(kCaller, options_.in_keys[i], spec));
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
    RILL_RETURN_IF_ERROR(plan->spec.Set(to, stack));
    // Read and written leaf of each side: the four places of StepLeaf.
    plan->leaves.push_back(
        {.key = from, .dtype = stack.dtype, .shape = step.Find(from)->shape});
    plan->leaves.push_back({.key = to,
                            .dtype = stack.dtype,
                            .shape = stack.shape,
                            .use = LeafUse::kWrite});
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
    const auto root = absl::c_find(options_.in_keys, FrameKey(key));
    if (root != options_.in_keys.end() &&
        OutKey(i) ==
            absl::StrCat("next/", OutKey(static_cast<size_t>(
                                      root - options_.in_keys.begin())))) {
      continue;
    }
    return Named(kPlanSteps, key,
                 absl::StrCat("got it alone or with another name, want \"",
                              FrameKey(key),
                              "\", which stands for both beside an "
                              "environment"));
  }
  return plan;
}

absl::Status CatFrames::OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                                TensorDict* /*state*/) const {
  const int64_t n = options_.num_frames;
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const BoundLeaf& frame = leaves[kFrame];
    const BoundLeaf& stack = leaves[kStack];
    const Pieces pieces(frame.dtype, frame.shape, options_.dim, n);
    RILL_ASSIGN_OR_RETURN(const std::byte* const pad,
                          PadOf("CatFrames::OnReset", "", frame.dtype));
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      const auto lane = static_cast<int64_t>(i);
      const std::byte* const from = frame.data + lane * frame.width;
      std::byte* const to = stack.data + lane * stack.width;
      // The oldest N - 1 places pad, the newest is the frame of the reset.
      for (int64_t place = 0; place + 1 < n; ++place) {
        if (pad == nullptr) {
          pieces.Put(from, place, to);
        } else {
          pieces.Fill(pad, static_cast<size_t>(DTypeSize(frame.dtype)), place,
                      to);
        }
      }
      pieces.Put(from, n - 1, to);
    }
  }
  return absl::OkStatus();
}

absl::Status CatFrames::OnStep(Leaves leaves, TensorDict* /*state*/) const {
  const int64_t n = options_.num_frames;
  for (; !leaves.empty(); leaves.remove_prefix(kStepLeaves)) {
    const BoundLeaf& stack = leaves[kStack];
    const BoundLeaf& frame = leaves[kNextFrame];
    const BoundLeaf& next = leaves[kNextStack];
    const Pieces pieces(frame.dtype, frame.shape, options_.dim, n);
    for (int64_t lane = 0; lane < next.rows; ++lane) {
      std::byte* const to = next.data + lane * next.width;
      // The root's stack is the one before this step, since next is carried
      // over to the root.
      pieces.Shift(stack.data + lane * stack.width, to);
      pieces.Put(frame.data + lane * frame.width, n - 1, to);
    }
  }
  return absl::OkStatus();
}

}  // namespace rill
