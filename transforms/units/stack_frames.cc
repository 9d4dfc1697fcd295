// SPDX-License-Identifier: Apache-2.0
// A stack is a list of frames, each of which is in one of four lists
// (FrameList). ForEachFrame says which; Fill copies the frames and JoinedSlots
// lists their slots, so that both agree.
#include "rill/transforms/units/stack_frames.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/draw_rows.h"
#include "rill/transforms/units/draw_walk.h"
#include "rill/transforms/units/stack_frames_kernels.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::DrawRows;
using transforms_internal::DrawWalk;
using transforms_internal::FindSpec;
using transforms_internal::FramePieces;
using transforms_internal::IsNext;
using transforms_internal::ReadLeaf;
using transforms_internal::StackFramesKernel;
using transforms_internal::WriteLeaf;

constexpr int64_t kMaxFrames = int64_t{1} << 20;

}  // namespace

namespace transforms_internal {

// Pieces of the usual widths by plain loads, as their width is a constant.
void PutFrame(const std::byte* frame, const FramePieces& pieces,
              std::byte* to) {
  const auto copy = [&](auto width) {
    for (int64_t i = 0; i < pieces.outer; ++i) {
      std::memcpy(to + i * pieces.n * width, frame + i * width,
                  static_cast<size_t>(width));
    }
  };
  switch (pieces.piece) {
    case 1:
      return copy(std::integral_constant<int64_t, 1>());
    case 2:
      return copy(std::integral_constant<int64_t, 2>());
    case 4:
      return copy(std::integral_constant<int64_t, 4>());
    case 8:
      return copy(std::integral_constant<int64_t, 8>());
    case 16:
      return copy(std::integral_constant<int64_t, 16>());
    default:
      return copy(pieces.piece);
  }
}

void PutValue(const std::byte* value, int64_t size, const FramePieces& pieces,
              std::byte* to) {
  for (int64_t i = 0; i < pieces.outer; ++i, to += pieces.n * pieces.piece) {
    for (int64_t at = 0; at < pieces.piece; at += size) {
      std::memcpy(to + at, value, static_cast<size_t>(size));
    }
  }
}

}  // namespace transforms_internal

StackFrames::StackFrames(const Options& options) : options_(options) {
  for (const std::string& key : options.keys) {
    frame_keys_.push_back(FrameKey(key));
  }
  // Made once: one element of each dtype that has the value.
  if (options.padding == Padding::kSame) return;
  for (int i = 0; i < kNumDTypes; ++i) {
    absl::StatusOr<Tensor> value = transforms_internal::FillValue(
        "", "", options.value, static_cast<DType>(i), {});
    if (value.ok()) values_[static_cast<size_t>(i)] = *std::move(value);
  }
}

std::string StackFrames::FrameKey(const std::string& key) {
  return IsNext(key) ? key.substr(5) : key;
}

bool StackFrames::IsStacked(absl::string_view key) const {
  return std::find(options_.keys.begin(), options_.keys.end(), key) !=
         options_.keys.end();
}

// Every stack needs root frames of the rows before its draw, N - 1 of them; for
// N = 1 the list is empty.
std::set<std::string> StackFrames::KeysBefore() const {
  return {frame_keys_.begin(), frame_keys_.end()};
}

std::set<std::string> StackFrames::KeysBehind() const {
  std::set<std::string> keys;
  // Frames behind a draw are root frames of stacks that end behind their row.
  for (const std::string& key : options_.keys) {
    if (IsNext(key) && options_.num_frames > 1) keys.insert(FrameKey(key));
  }
  return keys;
}

absl::StatusOr<StackFrames::Layout> StackFrames::LayoutOf(
    absl::string_view caller, absl::string_view key, DType dtype,
    const Shape& frame) const {
  const int rank = frame.rank() + (options_.new_dim ? 1 : 0);
  const int at = rank + options_.dim;
  if (at < 0) {
    return InvalidArgument(
        caller, ": \"", key, "\": got frames ", frame.ToString(),
        ", want the dimension ", options_.dim,
        "; stack along a new one (new_dim) or unsqueeze the leaf");
  }
  Layout layout;
  layout.pieces.outer = frame.Prefix(at).num_elements();
  layout.pieces.n = options_.num_frames;
  // Sizes are multiplied with a check of overflow, as they come from options.
  const bool is_countable = !__builtin_mul_overflow(
      frame.Suffix(at).num_elements(), DTypeSize(dtype), &layout.pieces.piece);
  std::array<int64_t, Shape::kMaxRank + 1> sizes = {};
  int64_t* const joined = sizes.data() + at;
  std::copy_n(frame.sizes().begin(), at, sizes.data());
  std::copy(frame.sizes().begin() + at, frame.sizes().end(),
            joined + (options_.new_dim ? 1 : 0));
  if (options_.new_dim) *joined = 1;
  if (__builtin_mul_overflow(*joined, options_.num_frames, joined)) {
    *joined = -1;
  }
  const absl::StatusOr<Shape> stack = Shape::Create(
      absl::MakeConstSpan(sizes.data(), static_cast<size_t>(rank)));
  // One dimension more is the batch's, so a row has at most kMaxRank - 1.
  if (!is_countable || !stack.ok() || rank >= Shape::kMaxRank) {
    return InvalidArgument(caller, ": \"", key, "\": got frames ",
                           frame.ToString(), ", want ", options_.num_frames,
                           " of them inside the limits of a shape");
  }
  layout.stack = *stack;
  return layout;
}

OptionValues StackFrames::option_values() const {
  return OptionValues()
      .Int("num_frames", options_.num_frames)
      .Texts("keys", options_.keys)
      .Int("dim", options_.dim)
      .Bool("new_dim", options_.new_dim)
      .Choice("padding",
              options_.padding == Padding::kSame ? "kSame" : "kConstant")
      .Double("value", options_.value);
}

absl::Status StackFrames::CheckRows(absl::string_view caller,
                                    const TensorDictSpec& rows) const {
  for (const std::string& key : options_.keys) {
    RILL_RETURN_IF_ERROR(StackSpec(caller, key, rows).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> StackFrames::PadOf(absl::string_view caller,
                                                    absl::string_view key,
                                                    DType dtype) const {
  if (options_.padding == Padding::kSame) return nullptr;
  const Tensor& value = values_[static_cast<size_t>(dtype)];
  if (value.is_valid()) return value.raw_data();
  return transforms_internal::FillValue(caller, key, options_.value, dtype, {})
      .status();
}

// The domain of one frame, expanded along a new dimension, which joining merges
// with the one behind it. No bounds where a row of choices would be torn, or
// the frames before are of another domain.
absl::StatusOr<LeafSpec> StackFrames::StackSpec(
    absl::string_view caller, const std::string& key,
    const TensorDictSpec& rows) const {
  RILL_ASSIGN_OR_RETURN(LeafSpec frame, FindSpec(caller, key, rows));
  const std::string before_key = FrameKey(key);
  RILL_ASSIGN_OR_RETURN(const LeafSpec before,
                        FindSpec(caller, before_key, rows));
  if (before.dtype != frame.dtype || !(before.shape == frame.shape)) {
    return InvalidArgument(caller, ": \"", key, "\": got ", frame.ToString(),
                           ", want \"", before_key, "\"'s ", before.ToString());
  }
  RILL_ASSIGN_OR_RETURN(const Layout layout,
                        LayoutOf(caller, key, frame.dtype, frame.shape));
  const LeafSpec any = LeafSpec::Unbounded(frame.dtype, layout.stack);
  const bool is_same = options_.num_frames == 1 || frame == before;
  if (options_.padding == Padding::kConstant) {
    RILL_ASSIGN_OR_RETURN(frame, transforms_internal::WithFillValue(
                                     caller, key, options_.value, frame));
  }
  // A stack of "next/<key>" has frames of <key> too.
  if (!is_same) return any;
  const int at = layout.stack.rank() + options_.dim;
  const absl::StatusOr<LeafSpec> one = frame.Unsqueeze(at);
  if (!one.ok()) return any;
  const absl::StatusOr<LeafSpec> stack =
      one->Expand(one->shape.WithSize(at, options_.num_frames));
  if (!stack.ok()) return any;
  return stack->Reshape(layout.stack).value_or(any);
}

absl::Status StackFrames::ExtendSpec(absl::string_view caller,
                                     const TensorDictSpec& rows,
                                     TensorDictSpec* batch) const {
  for (const std::string& key : options_.keys) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec stack, StackSpec(caller, key, rows));
    RILL_RETURN_IF_ERROR(batch->Set(key, stack));
  }
  return absl::OkStatus();
}

absl::Status StackFrames::Apply(absl::string_view caller, const Input& input,
                                TensorDict* batch) const {
  for (size_t i = 0; i < options_.keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(Stack(caller, i, input, batch));
  }
  return absl::OkStatus();
}

struct StackFrames::Frames {
  bool is_next = false;
  Tensor before;  // [draws * (N - 1)]
  Tensor rows;    // [R] Root frames of the batch's rows; not read for N = 1.
  Tensor behind;  // Those of the steps behind; invalid where there are none.
  Tensor last;    // [R] and more: each stack's newest, of "next" leaves alone.
  const std::byte* value = nullptr;  // Null where none is padded by value.
};

absl::Status StackFrames::Stack(absl::string_view caller, size_t i,
                                const Input& input, TensorDict* batch) const {
  const std::string& key = options_.keys[i];
  const std::string& frame_key = frame_keys_[i];
  Frames frames;
  // The newest frame of a "next" stack is that of the window's last row.
  frames.is_next = IsNext(key);
  RILL_ASSIGN_OR_RETURN(
      const Tensor newest,
      ReadLeaf(caller, key, frames.is_next ? *input.ends : *input.rows));
  const Shape frame = newest.shape().Suffix(1);
  const DType dtype = newest.dtype();
  RILL_ASSIGN_OR_RETURN(
      frames.before,
      ReadLeaf(caller, frame_key, dtype,
               input.before->batch_shape().Concat(frame), *input.before));
  // Root frames of the batch's rows are apart where they are stacked
  // themselves, else they are the batch's leaf.
  RILL_ASSIGN_OR_RETURN(
      frames.rows,
      ReadLeaf(caller, frame_key, dtype, batch->batch_shape().Concat(frame),
               IsStacked(frame_key) ? *input.rows : *batch));
  if (frames.is_next) {
    frames.last = newest;
    if (input.steps != nullptr && options_.num_frames > 1) {
      RILL_ASSIGN_OR_RETURN(
          frames.behind,
          ReadLeaf(caller, frame_key, dtype,
                   input.behind->batch_shape().Concat(frame), *input.behind));
    }
  }
  // Only a list with a mask has frames that are padded by the value.
  if (options_.padding == Padding::kConstant && !input.frames->mask.empty()) {
    RILL_ASSIGN_OR_RETURN(frames.value, PadOf(caller, key, dtype));
  }
  RILL_ASSIGN_OR_RETURN(const Layout layout,
                        LayoutOf(caller, key, dtype, frame));
  RILL_ASSIGN_OR_RETURN(
      const Tensor stacks,
      WriteLeaf(key, dtype, batch->batch_shape().Concat(layout.stack),
                {.is_passed_in = true}, batch));
  Fill(input, frames, layout, stacks);
  return absl::OkStatus();
}

// Which list a frame of a stack is in.
enum class FrameList : uint8_t { kBefore, kRows, kBehind, kLast };

// Calls fn(list, i) for each frame of each row's stack, oldest first: it is the
// i-th of the list. A stack of a root leaf ends with its row's frame. That of a
// "next" leaf has the frames up to the last row of the window, and then what
// follows that.
template <typename Fn>
void StackFrames::ForEachFrame(const SamplePlan& plan,
                               const SamplePlan::Context* steps,
                               int64_t num_steps, bool is_next, Fn fn) const {
  const int64_t n = options_.num_frames;
  // A "next" stack has N - 1 root frames, then its own.
  const int64_t roots = is_next ? n - 1 : n;
  DrawWalk walk(plan, steps);
  for (DrawRows rows; walk.Next(&rows);) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      // A row that pads has the stack of the row that it repeats.
      int64_t end = rows.PositionOf(row);
      if (is_next && steps != nullptr) {
        end = std::min(end + num_steps, rows.num_positions()) - 1;
      }
      for (int64_t position = end - roots + 1; position <= end; ++position) {
        // Frames before the draw: N - 1 a draw, the last of them at position
        // -1.
        if (position < 0) {
          fn(FrameList::kBefore, (rows.draw + 1) * (n - 1) + position);
        } else if (position < rows.num_real()) {
          fn(FrameList::kRows, rows.first + position);
        } else {
          fn(FrameList::kBehind, rows.behind + position - rows.num_real());
        }
      }
      if (is_next) fn(FrameList::kLast, row);
    }
  }
}

// Frames come stack by stack, each oldest first, so the place of a frame in its
// stack only moves on by a piece.
void StackFrames::Fill(const Input& input, const Frames& frames,
                       const Layout& layout, const Tensor& stacks) const {
  const int64_t n = options_.num_frames;
  const FramePieces& pieces = layout.pieces;
  const int64_t bytes = pieces.outer * pieces.piece;
  if (bytes == 0) return;
  const auto data = [](const Tensor& tensor) {
    return tensor.is_valid() ? tensor.raw_data() : nullptr;
  };
  const std::byte* const lists[] = {data(frames.before), data(frames.rows),
                                    data(frames.behind), data(frames.last)};
  std::byte* to = stacks.raw_data();
  int64_t put = 0;  // Of the stack's frames.
  // The mask of the frames before a draw says which of them are before the
  // trajectory. With kSame the unit plans the first frame's row there, and
  // nothing is padded here. After n frames `to` has moved by n pieces, and the
  // next stack begins n * bytes behind this one.
  ForEachFrame(
      *input.plan, input.steps, input.num_steps, frames.is_next,
      [&](FrameList list, int64_t i) {
        if (list == FrameList::kBefore && frames.value != nullptr &&
            input.frames->mask[static_cast<size_t>(i)] == 0) {
          PutValue(frames.value, DTypeSize(stacks.dtype()), pieces, to);
        } else {
          PutFrame(lists[static_cast<size_t>(list)] + i * bytes, pieces, to);
        }
        to += pieces.piece;
        if (++put < n) return;
        to += n * (bytes - pieces.piece);
        put = 0;
      });
}

absl::Status StackFrames::Enqueue(absl::string_view caller, const Input& input,
                                  transforms_internal::UnitWork* work,
                                  TensorDict* batch) const {
  for (size_t i = 0; i < options_.keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(EnqueueStack(caller, i, input, work, batch));
  }
  return absl::OkStatus();
}

// The lists are those of Stack. The host says of each frame where it comes
// from, as Fill does.
absl::Status StackFrames::EnqueueStack(absl::string_view caller, size_t i,
                                       const Input& input,
                                       transforms_internal::UnitWork* work,
                                       TensorDict* batch) const {
  const std::string& key = options_.keys[i];
  const std::string& frame_key = frame_keys_[i];
  const bool is_next = IsNext(key);
  RILL_ASSIGN_OR_RETURN(const Tensor newest,
                        work->Read(key, is_next ? *input.ends : *input.rows));
  const Shape frame = newest.shape().Suffix(1);
  const DType dtype = newest.dtype();
  const auto read = [&](const TensorDict& dict) {
    return work->Read(frame_key, dtype, dict.batch_shape().Concat(frame), dict);
  };
  Tensor lists[4];  // By FrameList.
  RILL_ASSIGN_OR_RETURN(lists[0], read(*input.before));
  RILL_ASSIGN_OR_RETURN(lists[1],
                        read(IsStacked(frame_key) ? *input.rows : *batch));
  if (is_next) {
    lists[3] = newest;
    if (input.steps != nullptr && options_.num_frames > 1) {
      RILL_ASSIGN_OR_RETURN(lists[2], read(*input.behind));
    }
  }
  // Also where none pads here: a graph of this launch has batches to come.
  RILL_ASSIGN_OR_RETURN(const std::byte* const value,
                        PadOf(caller, key, dtype));
  const std::vector<uint8_t>& mask = input.frames->mask;
  RILL_ASSIGN_OR_RETURN(const Layout layout,
                        LayoutOf(caller, key, dtype, frame));
  const Shape batch_shape = batch->batch_shape();
  RILL_ASSIGN_OR_RETURN(
      const Tensor stacks,
      work->Write(key, dtype, batch_shape.Concat(layout.stack), batch));
  const int64_t num_frames = batch_shape[0] * options_.num_frames;
  if (num_frames == 0 || frame.num_elements() == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const auto sources,
                        work->uploads().Mirror<int64_t>(num_frames));
  int64_t put = 0;
  ForEachFrame(*input.plan, input.steps, input.num_steps, is_next,
               [&](FrameList list, int64_t number) {
                 const bool pads = list == FrameList::kBefore &&
                                   value != nullptr && !mask.empty() &&
                                   mask[static_cast<size_t>(number)] == 0;
                 sources.host[put++] =
                     pads ? StackFramesKernel<uint8_t>::kPad
                          : StackFramesKernel<uint8_t>::kLists * number +
                                static_cast<int64_t>(list);
               });
  // Words where all addresses are multiples of one.
  auto all = static_cast<uint64_t>(layout.pieces.piece) |
             reinterpret_cast<uint64_t>(stacks.raw_data());
  for (const Tensor& list : lists) {
    if (list.is_valid()) all |= reinterpret_cast<uint64_t>(list.raw_data());
  }
  const auto launch = [&]<typename T>(T /*word*/) {
    StackFramesKernel<T> kernel = {
        .sources = sources.device,
        .num_frames = num_frames,
        .stack = options_.num_frames,
        .outer = layout.pieces.outer,
        .piece = layout.pieces.piece / static_cast<int64_t>(sizeof(T)),
        .stacks = reinterpret_cast<T*>(stacks.raw_data())};
    for (size_t list = 0; list < 4; ++list) {
      if (!lists[list].is_valid()) continue;
      kernel.lists[list] = {
          .frames = reinterpret_cast<const T*>(lists[list].raw_data()),
          .count = lists[list].shape()[0]};
    }
    const auto size = static_cast<size_t>(DTypeSize(dtype));
    for (size_t at = 0; value != nullptr && at < sizeof(kernel.pad);
         at += size) {
      std::memcpy(reinterpret_cast<std::byte*>(kernel.pad) + at, value, size);
    }
    work->Launch(kernel, kernel.grid());
  };
  if (all % sizeof(uint64_t) == 0) {
    launch(uint64_t{0});
  } else {
    launch(uint8_t{0});
  }
  return absl::OkStatus();
}

// Frames lie one behind the other where a frame is one piece. A padding value
// is no stored row.
bool StackFrames::JoinsFrames(const TensorDictSpec& rows) const {
  return (options_.num_frames == 1 || options_.padding == Padding::kSame) &&
         std::all_of(options_.keys.begin(), options_.keys.end(),
                     [&](const std::string& key) {
                       const LeafSpec& frame = *rows.Find(key);
                       const auto layout =
                           LayoutOf("", key, frame.dtype, frame.shape);
                       return layout.ok() && layout->pieces.outer == 1;
                     });
}

// N - 1 frames of the root leaf, then the leaf's own.
std::vector<std::string> StackFrames::PartsOf(const std::string& key) const {
  std::vector<std::string> parts(static_cast<size_t>(options_.num_frames),
                                 FrameKey(key));
  parts.back() = key;
  return parts;
}

void StackFrames::JoinedSlots(const SamplePlan& plan,
                              const SamplePlan::Context& frames,
                              const SamplePlan::Context* steps,
                              const SamplePlan::Context* ends,
                              int64_t num_steps, const std::string& key,
                              std::vector<Slot>* slots) const {
  // The same walk as Fill's, with slots in place of bytes.
  slots->clear();
  const auto row = [&](size_t i) {
    return plan.rows.empty() ? plan.draws[i].slot : plan.rows[i];
  };
  ForEachFrame(
      plan, steps, num_steps, IsNext(key), [&](FrameList list, int64_t number) {
        const auto i = static_cast<size_t>(number);
        switch (list) {
          case FrameList::kBefore:
            return slots->push_back(frames.rows[i]);
          case FrameList::kRows:
            return slots->push_back(row(i));
          case FrameList::kBehind:
            return slots->push_back(steps->rows[i]);
          case FrameList::kLast:
            return slots->push_back(ends == nullptr ? row(i) : ends->rows[i]);
        }
      });
}

absl::StatusOr<StackFrames> StackFrames::Create(const Options& options,
                                                absl::string_view caller) {
  const auto bad = [caller](const auto&... what) {
    return InvalidArgument(caller, ": ", what...);
  };
  if (options.num_frames < 1 || options.num_frames > kMaxFrames) {
    return bad("num_frames: got ", options.num_frames, ", want 1 .. ",
               kMaxFrames);
  }
  if (options.dim >= 0 || options.dim < -Shape::kMaxRank) {
    return bad("dim: got ", options.dim, ", want ", -Shape::kMaxRank, " .. -1");
  }
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckSomeKeys(caller, "keys", options.keys));
  return StackFrames(options);
}

}  // namespace rill
