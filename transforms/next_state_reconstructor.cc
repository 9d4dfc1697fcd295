// SPDX-License-Identifier: Apache-2.0
// Two passes. The first computes one flag a row: whether the row behind it is
// its next step. Each marker only clears flags, so the order of the markers
// does not matter. The second pass copies each line shifted by one row, which
// is one memcpy, and then overwrites the rows without a next step.
#include "rill/transforms/next_state_reconstructor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/element.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/fill_value.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/timeline/row_picks.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;

constexpr absl::string_view kForward = "NextStateReconstructor::Forward";
constexpr absl::string_view kForwardSpec =
    "NextStateReconstructor::ForwardSpec";

// The rows of a batch [..., T] as `count` lines of `length` rows, which lie one
// behind the other.
struct Lines {
  int64_t count = 0;
  int64_t length = 0;  // T.

  int64_t rows() const { return count * length; }
};

// Bytes of one row of a contiguous leaf; 0 for a batch without rows.
int64_t WidthOf(const Tensor& leaf, const Lines& lines) {
  return lines.rows() == 0 ? 0 : leaf.size_bytes() / lines.rows();
}

class NextStateReconstructorTransform final : public BatchTransform {
 public:
  explicit NextStateReconstructorTransform(
      const NextStateReconstructor::Options& options)
      : options_(options),
        fill_value_(options.fill_value.value_or(
            std::numeric_limits<double>::quiet_NaN())),
        spare_(4 + 2 * options.keys.size()),
        device_work_(4 + 2 * options.keys.size()) {
    for (const std::string& key : options.keys) {
      next_keys_.push_back(absl::StrCat("next/", key));
    }
    fills_.resize(options.keys.size());
  }

  absl::string_view name() const override { return "NextStateReconstructor"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Texts("keys", options_.keys).Text("traj_key", options_.traj_key);
    values.Text("done_key", options_.done_key);
    values.Text("step_count_key", options_.step_count_key);
    values.Text("mask_key", options_.mask_key);
    if (options_.fill_value.has_value()) {
      values.Double("fill_value", *options_.fill_value);
    } else {
      values.None("fill_value");
    }
    return values.Bool("strict", options_.strict);
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    const Shape& shape = batch->batch_shape();
    RILL_RETURN_IF_ERROR(
        transforms_internal::NumSteps(kForward, shape).status());
    // Counts tell a next step among rows of any order.
    if (!IsLookedAt(options_.step_count_key, *batch)) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckTimeIsLast(kForward, *batch));
    }
    Lines lines;
    lines.length = shape[shape.rank() - 1];
    lines.count = shape.Prefix(shape.rank() - 1).num_elements();
    RILL_ASSIGN_OR_RETURN(
        const Tensor found,
        transforms_internal::GetLeaf(kForward, options_.keys[0], *batch));
    if (!found.is_host()) return ShiftOnDevice(found.device(), lines, batch);
    // Flags are bytes and no bools: they are combined by &= in the loops below.
    RILL_ASSIGN_OR_RETURN(const Tensor flags,
                          spare_.Take(DType::kUInt8, {lines.rows()}));
    const Flags has_next(flags.data<uint8_t>(),
                         static_cast<size_t>(lines.rows()));
    RILL_RETURN_IF_ERROR(FindNext(lines, *batch, has_next));
    // All are found before the first one changes.
    absl::InlinedVector<Rows, 8> rows;
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(rows.emplace_back(), FindRows(i, *batch));
    }
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      RILL_RETURN_IF_ERROR(
          Shift(rows[i], next_keys_[i], lines, has_next, batch));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    for (const std::string& key : options_.keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf, transforms_internal::GetSpec(
                                                     kForwardSpec, key, spec));
      RILL_ASSIGN_OR_RETURN(const LeafSpec next,
                            transforms_internal::WithFillValue(
                                kForwardSpec, key, fill_value_, leaf));
      RILL_RETURN_IF_ERROR(after.Set(absl::StrCat("next/", key), next));
      if (options_.done_key.empty()) continue;
      RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
          kForwardSpec, key, options_.done_key, spec));
    }
    std::vector<std::string> ends =
        transforms_internal::EndsOf(options_.done_key, spec);
    if (ends.empty()) ends = {options_.done_key};
    std::vector<std::string> markers = ends;
    markers.insert(markers.end(), {options_.traj_key, options_.step_count_key,
                                   options_.mask_key});
    for (const std::string& key : markers) {
      if (key.empty()) continue;
      if (spec.Find(key) == nullptr &&
          (!options_.strict || key == options_.mask_key)) {
        continue;
      }
      RILL_ASSIGN_OR_RETURN(
          const LeafSpec marker,
          transforms_internal::GetSpec(kForwardSpec, key, spec));
      const bool is_flag =
          std::find(ends.begin(), ends.end(), key) != ends.end() ||
          key == options_.mask_key;
      if (is_flag && marker.dtype != DType::kBool) {
        return transforms_internal::Misfit(kForwardSpec, key, marker, "bool");
      }
      if (key == options_.step_count_key &&
          !tensor_internal::HasArithmetic(marker.dtype)) {
        return transforms_internal::Misfit(kForwardSpec, key, marker,
                                           "a dtype with arithmetic");
      }
    }
    return after;
  }

 private:
  using Flags = absl::Span<uint8_t>;
  using Markers = transforms_internal::NextPickKernel;

  absl::Status ShiftOnDevice(Device device, const Lines& lines,
                             TensorDict* batch) const {
    DeviceWork::Call call(&device_work_);
    RILL_RETURN_IF_ERROR(call.Begin(device)) << kForward;
    Markers kernel;
    kernel.rows = lines.rows();
    kernel.time = lines.length;
    RILL_RETURN_IF_ERROR(AddMarkers(lines, *batch, &call, &kernel));
    RILL_ASSIGN_OR_RETURN(const Tensor picks,
                          call.Take(DType::kInt64, {lines.rows()}));
    kernel.picks = picks.data<int64_t>();
    if (lines.rows() > 0) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::EnqueueNextPicks(kernel, call.stream()));
    }
    absl::InlinedVector<Tensor, 8> made;
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                            transforms_internal::ReadDeviceLeaf(
                                kForward, options_.keys[i], *batch, &call));
      RILL_ASSIGN_OR_RETURN(
          const Tensor fill,
          transforms_internal::FillValue(kForward, options_.keys[i],
                                         fill_value_, leaf.dtype(), {}));
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckMaySet(kForward, next_keys_[i], *batch));
      RILL_ASSIGN_OR_RETURN(made.emplace_back(),
                            call.Take(leaf.dtype(), leaf.shape()));
      RILL_RETURN_IF_ERROR(transforms_internal::CopyPicks(
          leaf, picks, lines.rows(), /*n=*/1,
          absl::MakeConstSpan(fill.raw_data(),
                              static_cast<size_t>(fill.size_bytes())),
          made.back(), call.stream()));
    }
    for (size_t i = 0; i < made.size(); ++i) {
      RILL_RETURN_IF_ERROR(batch->Set(next_keys_[i], std::move(made[i])));
    }
    return call.End();
  }

  // What FindNext looks at.
  absl::Status AddMarkers(const Lines& lines, const TensorDict& batch,
                          DeviceWork::Call* call, Markers* kernel) const {
    const auto add = [&](absl::string_view key, Markers::Kind kind) {
      return AddMarker(key, kind, lines, batch, call, kernel);
    };
    if (IsLookedAt(options_.traj_key, batch)) {
      RILL_RETURN_IF_ERROR(add(options_.traj_key, Markers::Kind::kSame));
    }
    for (const absl::string_view key : transforms_internal::PieceKeys()) {
      if (absl::StartsWith(key, "collector/") || batch.Find(key) == nullptr) {
        continue;
      }
      RILL_RETURN_IF_ERROR(add(key, Markers::Kind::kSame));
    }
    for (const std::string& key : EndsIn(batch)) {
      RILL_RETURN_IF_ERROR(add(key, Markers::Kind::kEnd));
    }
    if (!options_.mask_key.empty() &&
        batch.Find(options_.mask_key) != nullptr) {
      RILL_RETURN_IF_ERROR(add(options_.mask_key, Markers::Kind::kValid));
    }
    if (!IsLookedAt(options_.step_count_key, batch)) return absl::OkStatus();
    return add(options_.step_count_key, Markers::Kind::kCount);
  }

  static absl::Status AddMarker(absl::string_view key, Markers::Kind kind,
                                const Lines& lines, const TensorDict& batch,
                                DeviceWork::Call* call, Markers* kernel) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, transforms_internal::ReadDeviceLeaf(
                                           kForward, key, batch, call));
    const bool is_flag =
        kind == Markers::Kind::kEnd || kind == Markers::Kind::kValid;
    if (is_flag && leaf.dtype() != DType::kBool) {
      return InvalidArgument(kForward, ": \"", key, "\": got ",
                             DTypeName(leaf.dtype()), ", want bool");
    }
    if (kind == Markers::Kind::kCount) {
      if (!tensor_internal::HasArithmetic(leaf.dtype())) {
        return InvalidArgument(kForward, ": \"", key, "\": got ",
                               DTypeName(leaf.dtype()),
                               ", want a dtype with arithmetic");
      }
      transforms_internal::ElementCopies copies(&call->stream());
      DeviceRows rows(leaf, /*batch_rank=*/0, call, &copies);
      RILL_RETURN_IF_ERROR(rows.Cast(DType::kInt64));
      RILL_ASSIGN_OR_RETURN(leaf, rows.Finish(/*is_in_place=*/false,
                                              /*shares=*/true));
      RILL_RETURN_IF_ERROR(copies.Launch());
    }
    kernel->markers[kernel->num_markers++] = {leaf.data<uint8_t>(),
                                              WidthOf(leaf, lines), kind};
    return absl::OkStatus();
  }

  transforms_internal::EndKeys EndsIn(const TensorDict& batch) const {
    if (options_.done_key.empty()) return {};
    transforms_internal::EndKeys keys = transforms_internal::EndsOf(
        options_.done_key,
        [&](absl::string_view key) { return batch.Find(key) != nullptr; });
    if (keys.empty() && options_.strict) keys = {options_.done_key};
    return keys;
  }

  // The mask is no such marker: its absence means that no row pads.
  bool IsLookedAt(absl::string_view key, const TensorDict& batch) const {
    return !key.empty() && (options_.strict || batch.Find(key) != nullptr);
  }

  // For each row: whether the row behind it is its next step.
  absl::Status FindNext(const Lines& lines, const TensorDict& batch,
                        Flags has_next) const {
    std::fill(has_next.begin(), has_next.end(), 1);
    // The last row of a line has no row behind it. The row that follows in
    // memory is the first of another line.
    for (int64_t line = 0; line < lines.count && lines.length > 0; ++line) {
      has_next[static_cast<size_t>((line + 1) * lines.length - 1)] = 0;
    }
    if (IsLookedAt(options_.traj_key, batch)) {
      RILL_RETURN_IF_ERROR(
          LookAtChanges(options_.traj_key, lines, batch, has_next));
    }
    for (const absl::string_view key : transforms_internal::PieceKeys()) {
      // Those of collectors are options here.
      if (absl::StartsWith(key, "collector/") || batch.Find(key) == nullptr) {
        continue;
      }
      RILL_RETURN_IF_ERROR(LookAtChanges(key, lines, batch, has_next));
    }
    RILL_RETURN_IF_ERROR(LookAtFlags(lines, batch, has_next));
    RILL_RETURN_IF_ERROR(LookAtMask(lines, batch, has_next));
    return LookAtCounts(lines, batch, has_next);
  }

  // Clears the flags of rows that differ in `key` from those behind them. Rows
  // are compared as bytes, so they may have any dtype. Pairs across two lines
  // are compared too: their flag is 0 already.
  static absl::Status LookAtChanges(absl::string_view key, const Lines& lines,
                                    const TensorDict& batch, Flags has_next) {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                          transforms_internal::ReadLeaf(kForward, key, batch));
    const int64_t width = WidthOf(leaf, lines);
    for (int64_t i = 0; width > 0 && i + 1 < lines.rows(); ++i) {
      const std::byte* row = leaf.raw_data() + i * width;
      has_next[static_cast<size_t>(i)] &=
          std::memcmp(row, row + width, static_cast<size_t>(width)) == 0;
    }
    return absl::OkStatus();
  }

  // The leaf, contiguous; INVALID_ARGUMENT unless it is bool.
  static absl::StatusOr<Tensor> ReadBool(const std::string& key,
                                         const TensorDict& batch) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          transforms_internal::ReadLeaf(kForward, key, batch));
    if (leaf.dtype() == DType::kBool) return leaf;
    return InvalidArgument(kForward, ": \"", key, "\": got ",
                           DTypeName(leaf.dtype()), ", want bool");
  }

  // Clears the flags of rows that pad and of those before them, whose next row
  // would be a repeated one.
  absl::Status LookAtMask(const Lines& lines, const TensorDict& batch,
                          Flags has_next) const {
    if (options_.mask_key.empty() || batch.Find(options_.mask_key) == nullptr) {
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(const Tensor mask,
                          ReadBool(options_.mask_key, batch));
    const int64_t width = WidthOf(mask, lines);
    for (int64_t i = 0; i < lines.rows() * width; ++i) {
      if (mask.data<uint8_t>()[i] != 0) continue;
      const int64_t row = i / width;
      has_next[static_cast<size_t>(row)] = 0;
      if (row > 0) has_next[static_cast<size_t>(row - 1)] = 0;
    }
    return absl::OkStatus();
  }

  absl::Status LookAtFlags(const Lines& lines, const TensorDict& batch,
                           Flags has_next) const {
    for (const std::string& key : EndsIn(batch)) {
      RILL_ASSIGN_OR_RETURN(const Tensor ends, ReadBool(key, batch));
      const int64_t width = WidthOf(ends, lines);
      for (int64_t i = 0; i < lines.rows() * width; ++i) {
        if (ends.data<uint8_t>()[i] != 0) {
          has_next[static_cast<size_t>(i / width)] = 0;
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status LookAtCounts(const Lines& lines, const TensorDict& batch,
                            Flags has_next) const {
    if (!IsLookedAt(options_.step_count_key, batch)) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                          transforms_internal::ReadLeaf(
                              kForward, options_.step_count_key, batch));
    // Cast to int64, which holds each integer dtype with arithmetic exactly.
    RILL_ASSIGN_OR_RETURN(const Tensor counts,
                          spare_.Cast(leaf, DType::kInt64));
    const int64_t width = WidthOf(counts, lines) / DTypeSize(DType::kInt64);
    if (width == 0) return absl::OkStatus();
    for (int64_t i = 0; i + 1 < lines.rows(); ++i) {
      const int64_t* count = counts.data<int64_t>() + i * width;
      // The largest count has no successor; count + 1 would overflow.
      has_next[static_cast<size_t>(i)] &=
          count[0] != std::numeric_limits<int64_t>::max() &&
          count[width] == count[0] + 1;
    }
    return absl::OkStatus();
  }

  struct Rows {
    Tensor leaf;
    Tensor fill;
  };
  absl::StatusOr<Rows> FindRows(size_t at, const TensorDict& batch) const {
    Rows rows;
    RILL_ASSIGN_OR_RETURN(rows.leaf, transforms_internal::ReadLeaf(
                                         kForward, options_.keys[at], batch));
    RILL_ASSIGN_OR_RETURN(
        rows.fill, Fill(at, rows.leaf.dtype(),
                        rows.leaf.shape().Suffix(batch.batch_shape().rank())));
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckMaySet(kForward, next_keys_[at], batch));
    return rows;
  }

  // Writes "next/<key>": each row is the row behind it, or the fill value.
  absl::Status Shift(const Rows& rows, const std::string& next_key,
                     const Lines& lines, Flags has_next,
                     TensorDict* batch) const {
    const auto& [leaf, fill] = rows;
    RILL_ASSIGN_OR_RETURN(const Tensor next,
                          spare_.Take(leaf.dtype(), leaf.shape()));
    RILL_RETURN_IF_ERROR(batch->Set(next_key, next));
    const int64_t width = WidthOf(leaf, lines);
    if (width == 0) return absl::OkStatus();
    // All but the last row of a line move by one row. The last one is filled
    // below, since its flag is always 0.
    for (int64_t line = 0; line < lines.count; ++line) {
      const int64_t begin = line * lines.length * width;
      std::memcpy(next.raw_data() + begin, leaf.raw_data() + begin + width,
                  static_cast<size_t>((lines.length - 1) * width));
    }
    for (int64_t i = 0; i < lines.rows(); ++i) {
      if (has_next[static_cast<size_t>(i)] != 0) continue;
      std::memcpy(next.raw_data() + i * width, fill.raw_data(),
                  static_cast<size_t>(width));
    }
    return absl::OkStatus();
  }

  // A row of the fill value, made once as rows do not change.
  absl::StatusOr<Tensor> Fill(size_t at, DType dtype, const Shape& row) const {
    absl::MutexLock lock(&mutex_);
    Tensor& fill = fills_[at];
    if (!fill.is_valid() || fill.dtype() != dtype || fill.shape() != row) {
      RILL_ASSIGN_OR_RETURN(
          fill, transforms_internal::FillValue(kForward, options_.keys[at],
                                               fill_value_, dtype, row));
    }
    return fill;
  }

  const NextStateReconstructor::Options options_;
  const double fill_value_;
  std::vector<std::string> next_keys_;  // Of each of keys.
  mutable transforms_internal::SpareTensors spare_;
  mutable DeviceWork device_work_;
  mutable absl::Mutex mutex_;
  mutable std::vector<Tensor> fills_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> NextStateReconstructor::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "NextStateReconstructor::Create";
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckRootKeys(kCreate, "keys", options.keys));
  for (const std::string& key : {options.traj_key, options.done_key,
                                 options.step_count_key, options.mask_key}) {
    if (key.empty()) continue;
    RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": marker";
  }
  return std::make_unique<NextStateReconstructorTransform>(options);
}

}  // namespace rill
