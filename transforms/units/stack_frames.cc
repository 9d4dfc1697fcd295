// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/stack_frames.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/unit_input.h"

namespace rill {
namespace {

using transforms_internal::InputLeaf;
using transforms_internal::IsNext;
using transforms_internal::OutputLeaf;

constexpr absl::string_view kPlanReads = "StackFrames::PlanReads";
constexpr absl::string_view kBatchSpec = "StackFrames::BatchSpec";
constexpr absl::string_view kApply = "StackFrames::Apply";
constexpr int64_t kMaxFrames = int64_t{1} << 20;

// The key of the frames before `key`'s: the root's.
std::string FrameKey(const std::string& key) {
  return IsNext(key) ? key.substr(5) : key;
}

// A frame is `outer` pieces of `piece` bytes; a stack is the first piece of
// each of its frames, then the second of each, ...
struct Layout {
  Shape stack;  // Without the batch dimension.
  int64_t outer = 1;
  int64_t piece = 0;
};

// Copies a frame to its place in a stack of `n`. Pieces of the usual widths by
// plain loads.
void PutFrame(const std::byte* frame, const Layout& layout, int64_t n,
              std::byte* to) {
  const auto copy = [&](auto width) {
    for (int64_t i = 0; i < layout.outer; ++i) {
      std::memcpy(to + i * n * width, frame + i * width,
                  static_cast<size_t>(width));
    }
  };
  switch (layout.piece) {
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
      return copy(layout.piece);
  }
}

// The same of a frame of one value.
void PutValue(const std::byte* value, int64_t size, const Layout& layout,
              int64_t n, std::byte* to) {
  for (int64_t i = 0; i < layout.outer; ++i, to += n * layout.piece) {
    for (int64_t at = 0; at < layout.piece; at += size) {
      std::memcpy(to + at, value, static_cast<size_t>(size));
    }
  }
}

class StackFramesTransform final : public UnitTransform {
 public:
  explicit StackFramesTransform(const StackFrames::Options& options)
      : options_(options) {
    for (const std::string& key : options.keys) {
      frame_keys_.push_back(FrameKey(key));
    }
    if (options.padding == StackFrames::Padding::kSame) return;
    for (int i = 0; i < kNumDTypes; ++i) {
      absl::StatusOr<Tensor> value = transforms_internal::FillValue(
          kApply, "", options.value, static_cast<DType>(i), {});
      if (value.ok()) values_[static_cast<size_t>(i)] = *std::move(value);
    }
  }

  absl::string_view name() const override { return "StackFrames"; }

  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kPlanReads, rows));
    Reads reads;
    for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
      (IsStacked(leaf.key) ? reads.rows.apart : reads.rows.batch)
          .push_back(leaf.key);
    }
    std::set<std::string> frames;
    for (const std::string& key : options_.keys) frames.insert(FrameKey(key));
    reads.context.resize(1);
    reads.context[0].apart.assign(frames.begin(), frames.end());
    return reads;
  }

  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kBatchSpec, rows));
    TensorDictSpec batch = rows;
    for (const std::string& key : options_.keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec stack, StackSpec(key, rows));
      RILL_RETURN_IF_ERROR(batch.Set(key, stack));
    }
    return batch;
  }

  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(kApply, plan, 1, rows,
                                                         context, *batch));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOneRowADraw(kApply, plan));
    RILL_RETURN_IF_ERROR(CheckFrames(plan));
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      RILL_RETURN_IF_ERROR(
          Stack(i, plan.context[0].mask, rows, context[0], batch));
    }
    return absl::OkStatus();
  }

 private:
  bool IsStacked(absl::string_view key) const {
    return std::find(options_.keys.begin(), options_.keys.end(), key) !=
           options_.keys.end();
  }

  absl::StatusOr<Layout> LayoutOf(absl::string_view caller,
                                  absl::string_view key, DType dtype,
                                  const Shape& frame) const {
    const int rank = frame.rank() + (options_.new_dim ? 1 : 0);
    const int at = rank + options_.dim;
    if (at < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(caller, ": \"", key, "\": got frames ", frame.ToString(),
                       ", want the dimension ", options_.dim,
                       "; new_dim = true stacks along one of their own"));
    }
    Layout layout;
    layout.outer = frame.Prefix(at).num_elements();
    layout.piece = frame.Suffix(at).num_elements() * DTypeSize(dtype);
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
    // One dimension more is the batch's.
    if (!stack.ok() || rank >= Shape::kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat(
          caller, ": \"", key, "\": got frames ", frame.ToString(), ", want ",
          options_.num_frames, " of them inside the limits of a shape"));
    }
    layout.stack = *stack;
    return layout;
  }

  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const {
    for (const std::string& key : options_.keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                            transforms_internal::FindSpec(caller, key, rows));
      RILL_ASSIGN_OR_RETURN(
          const LeafSpec frame,
          transforms_internal::FindSpec(caller, FrameKey(key), rows));
      if (leaf.dtype != frame.dtype || !(leaf.shape == frame.shape)) {
        return absl::InvalidArgumentError(absl::StrCat(
            caller, ": \"", key, "\": got ", leaf.ToString(), ", want \"",
            FrameKey(key), "\"'s ", frame.ToString()));
      }
      RILL_RETURN_IF_ERROR(
          LayoutOf(caller, key, leaf.dtype, leaf.shape).status());
      if (options_.padding == StackFrames::Padding::kSame) continue;
      if (!values_[static_cast<size_t>(leaf.dtype)].is_valid()) {
        return BadValue(caller, key, leaf.dtype);
      }
    }
    return absl::OkStatus();
  }

  absl::Status BadValue(absl::string_view caller, absl::string_view key,
                        DType dtype) const {
    return transforms_internal::FillValue(caller, key, options_.value, dtype,
                                          {})
        .status();
  }

  // The frames' domain along a new dimension, which joining merges with the one
  // behind it. No bounds where a row of choices would be torn, or the frames
  // before are of another domain.
  absl::StatusOr<LeafSpec> StackSpec(const std::string& key,
                                     const TensorDictSpec& rows) const {
    LeafSpec frame = *rows.Find(key);
    RILL_ASSIGN_OR_RETURN(const Layout layout,
                          LayoutOf(kBatchSpec, key, frame.dtype, frame.shape));
    const LeafSpec any = LeafSpec::Unbounded(frame.dtype, layout.stack);
    if (options_.num_frames > 1 && !(frame == *rows.Find(FrameKey(key)))) {
      return any;
    }
    if (options_.padding == StackFrames::Padding::kConstant) {
      RILL_ASSIGN_OR_RETURN(frame, transforms_internal::WithFillValue(
                                       kBatchSpec, key, options_.value, frame));
    }
    const int at = layout.stack.rank() + options_.dim;
    const absl::StatusOr<LeafSpec> one = frame.Unsqueeze(at);
    if (!one.ok()) return any;
    const absl::StatusOr<LeafSpec> stack =
        one->Expand(one->shape.WithSize(at, options_.num_frames));
    if (!stack.ok()) return any;
    return stack->Reshape(layout.stack).value_or(any);
  }

  absl::Status CheckFrames(const SamplePlan& plan) const {
    const SamplePlan::Context& frames = plan.context[0];
    const size_t before = static_cast<size_t>(options_.num_frames - 1);
    bool is_right = before == 0
                        ? frames.rows.empty()
                        : frames.rows.size() % before == 0 &&
                              frames.rows.size() / before == plan.draws.size();
    for (size_t i = 0; is_right && i < frames.rows.size(); ++i) {
      is_right = frames.segments[i] == static_cast<int64_t>(i / before);
    }
    if (is_right) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        kApply, ": plan: got ", frames.rows.size(), " frames before ",
        plan.draws.size(), " draws, want ", before, " before each"));
  }

  absl::Status Stack(size_t i, const std::vector<uint8_t>& mask,
                     const TensorDict& rows, const TensorDict& context,
                     TensorDict* batch) const {
    const std::string& key = options_.keys[i];
    const std::string& frame_key = frame_keys_[i];
    RILL_ASSIGN_OR_RETURN(const Tensor last,
                          transforms_internal::ReadLeaf(kApply, key, rows));
    const Shape frame = last.shape().Suffix(1);
    RILL_ASSIGN_OR_RETURN(
        const Tensor before,
        InputLeaf(kApply, frame_key, last.dtype(),
                  context.batch_shape().Concat(frame), context));
    // Of a next frame, the frame before it.
    Tensor own;
    if (IsNext(key)) {
      RILL_ASSIGN_OR_RETURN(
          own, InputLeaf(kApply, frame_key, last.dtype(), last.shape(),
                         IsStacked(frame_key) ? rows : *batch));
    }
    Tensor value;
    if (options_.padding == StackFrames::Padding::kConstant && !mask.empty()) {
      value = values_[static_cast<size_t>(last.dtype())];
      if (!value.is_valid()) return BadValue(kApply, key, last.dtype());
    }
    RILL_ASSIGN_OR_RETURN(const Layout layout,
                          LayoutOf(kApply, key, last.dtype(), frame));
    RILL_ASSIGN_OR_RETURN(
        const Tensor stacks,
        OutputLeaf(key, last.dtype(), batch->batch_shape().Concat(layout.stack),
                   batch));
    Fill({last, own, before, value}, mask, layout, stacks);
    return absl::OkStatus();
  }

  struct Frames {
    Tensor last;    // [B] The newest of each stack.
    Tensor own;     // [B] The one before it, of next frames alone.
    Tensor before;  // [B * (N - 1)] Those before the row's own.
    Tensor value;   // One element; invalid where none is padded by value.
  };

  void Fill(const Frames& frames, const std::vector<uint8_t>& mask,
            const Layout& layout, const Tensor& stacks) const {
    const int64_t n = options_.num_frames;
    const int64_t bytes = layout.outer * layout.piece;
    const bool is_next = frames.own.is_valid();
    if (bytes == 0) return;
    std::byte* to = stacks.raw_data();
    for (int64_t i = 0; i < frames.last.shape()[0]; ++i, to += n * bytes) {
      for (int64_t k = 0; k + 1 < n; ++k) {
        const int64_t j = i * (n - 1) + k + (is_next ? 1 : 0);
        std::byte* place = to + k * layout.piece;
        if (is_next && k + 2 == n) {
          PutFrame(frames.own.raw_data() + i * bytes, layout, n, place);
        } else if (frames.value.is_valid() &&
                   mask[static_cast<size_t>(j)] == 0) {
          PutValue(frames.value.raw_data(), DTypeSize(frames.value.dtype()),
                   layout, n, place);
        } else {
          PutFrame(frames.before.raw_data() + j * bytes, layout, n, place);
        }
      }
      PutFrame(frames.last.raw_data() + i * bytes, layout, n,
               to + (n - 1) * layout.piece);
    }
  }

  const StackFrames::Options options_;
  std::vector<std::string> frame_keys_;    // Of each key.
  std::array<Tensor, kNumDTypes> values_;  // Of padding, where there are any.
};

absl::Status BadOption(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("StackFrames::Create: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> StackFrames::Create(
    const Options& options) {
  if (options.num_frames < 1 || options.num_frames > kMaxFrames) {
    return BadOption(absl::StrCat("num_frames: got ", options.num_frames,
                                  ", want 1 .. ", kMaxFrames));
  }
  if (options.dim >= 0 || options.dim < -Shape::kMaxRank) {
    return BadOption(absl::StrCat("dim: got ", options.dim, ", want ",
                                  -Shape::kMaxRank, " .. -1"));
  }
  if (options.keys.empty()) {
    return BadOption("keys: got none, want at least one");
  }
  std::set<std::string> seen;
  for (const std::string& key : options.keys) {
    RILL_RETURN_IF_ERROR(CheckKey(key)) << "StackFrames::Create: keys";
    if (!seen.insert(key).second) {
      return BadOption(
          absl::StrCat("keys: got \"", key, "\" twice, want once"));
    }
  }
  return std::make_unique<StackFramesTransform>(options);
}

}  // namespace rill
