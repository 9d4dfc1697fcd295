// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/part_merge.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {
namespace {

constexpr absl::string_view kCaller = "ReplayBufferEnsemble::Sample";

// Where the leaves lie; all of a sample lie on one device.
Device DeviceOf(const TensorDict& batch) {
  Device device = Device::Cpu();
  batch.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    if (leaf.is_valid()) device = leaf.device();
  });
  return device;
}

template <typename T>
absl::StatusOr<Tensor> Ones(const Shape& shape, Device device) {
  RILL_ASSIGN_OR_RETURN(const Tensor ones, Tensor::Zeros(DTypeOf<T>, shape));
  std::fill_n(ones.data<T>(), ones.num_elements(), T{1});
  return ones.To(device);
}

// Gives `key` to those parts that lack it, where another has it.
template <typename T>
absl::Status FillUp(absl::Span<const BatchPart> parts, absl::string_view key,
                    std::vector<std::pair<TensorDict*, std::string>>* filled) {
  const bool has_key = std::any_of(
      parts.begin(), parts.end(),
      [&](const BatchPart& part) { return part.rows->Contains(key); });
  if (!has_key) return absl::OkStatus();
  for (const BatchPart& part : parts) {
    if (part.rows->Contains(key)) continue;
    RILL_ASSIGN_OR_RETURN(
        Tensor ones, Ones<T>(part.rows->batch_shape(), DeviceOf(*part.rows)));
    RILL_RETURN_IF_ERROR(part.rows->Set(key, std::move(ones)));
    filled->emplace_back(part.rows, std::string(key));
  }
  return absl::OkStatus();
}

absl::Status Join(absl::Span<const TensorDict> parts, bool stacked,
                  TensorDict* out) {
  return stacked ? StackInto(parts, 0, out) : CatInto(parts, 0, out);
}

// The error of joining them, of the first two that cannot be joined.
absl::Status ErrorOfTwo(absl::Span<const BatchPart> parts,
                        absl::Span<const TensorDict> rows, bool stacked,
                        const absl::Status& error) {
  for (size_t i = 1; i < rows.size(); ++i) {
    TensorDict both;
    const absl::Status status = Join({rows[0], rows[i]}, stacked, &both);
    if (status.ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat(kCaller, ": ", parts[0].label, " and ", parts[i].label,
                     ": got leaves that differ, want the same; give them "
                     "transforms that see to it: ",
                     status.message()));
  }
  return error;
}

absl::Status SetBufferIds(absl::Span<const BatchPart> parts, Tensor reused,
                          TensorDict* out) {
  const Shape& shape = out->batch_shape();
  const Device device = DeviceOf(*out);
  // The ids of the batch before are filled anew where they fit.
  const bool fits = reused.is_valid() && reused.dtype() == DType::kInt64 &&
                    reused.shape() == shape && reused.is_contiguous() &&
                    reused.is_writable() && reused.device().is_cpu() &&
                    device.is_cpu();
  if (!fits) {
    RILL_ASSIGN_OR_RETURN(reused, Tensor::Zeros(DType::kInt64, shape));
  }
  int64_t* id = reused.data<int64_t>();
  for (const BatchPart& part : parts) {
    id = std::fill_n(id, part.rows->batch_shape().num_elements(), part.member);
  }
  RILL_ASSIGN_OR_RETURN(Tensor placed, reused.To(device));
  return out->Set(kBufferIdsKey, std::move(placed));
}

// The last dimension is what it is in all parts, whose ends `buffer_ids` tell;
// else it is that of strangers.
absl::Status NameDims(absl::Span<const BatchPart> parts, TensorDict* out) {
  const auto is_last = [&](absl::string_view name) {
    return std::all_of(parts.begin(), parts.end(), [&](const BatchPart& part) {
      const std::vector<std::string>& names = part.rows->dim_names();
      return !names.empty() && names.back() == name;
    });
  };
  const auto has_name = [](const BatchPart& part) {
    return !part.rows->dim_names().empty();
  };
  if (std::none_of(parts.begin(), parts.end(), has_name)) {
    return absl::OkStatus();
  }
  const absl::string_view name = is_last(kTimeName) ? kTimeName : kRowsName;
  const std::vector<std::string>& now = out->dim_names();
  if (!now.empty() && now.back() == name) return absl::OkStatus();
  std::vector<std::string> names(
      static_cast<size_t>(out->batch_shape().rank()));
  names.back() = name;
  return out->SetDimNames(std::move(names));
}

}  // namespace

absl::Status MergeParts(absl::Span<const BatchPart> parts, bool stacked,
                        TensorDict* out) {
  for (const BatchPart& part : parts) {
    if (part.rows->batch_shape().rank() == 0 ||
        part.rows->Contains(kBufferIdsKey)) {
      return InvalidArgument(
          kCaller, ": ", part.label, ": got a sample ",
          part.rows->batch_shape().ToString(), " with \"", kBufferIdsKey,
          "\" or without rows, want neither; rename the key in its storage");
    }
  }
  // `out` has it from the batch before, the parts do not.
  Tensor ids;
  if (const Tensor* const found = out->Find(kBufferIdsKey)) {
    ids = *found;
    RILL_RETURN_IF_ERROR(out->Delete(kBufferIdsKey));
  }
  std::vector<std::pair<TensorDict*, std::string>> filled;
  absl::Status status = FillUp<float>(parts, kWeightKey, &filled);
  if (status.ok()) status = FillUp<bool>(parts, kMaskKey, &filled);
  if (status.ok()) {
    std::vector<TensorDict> rows;
    for (const BatchPart& part : parts) rows.push_back(*part.rows);
    status = Join(rows, stacked, out);
    // Pairs are joined again only after an error, to name two members.
    if (!status.ok()) status = ErrorOfTwo(parts, rows, stacked, status);
  }
  // The parts go back as they came, so that their members can reuse them.
  for (const auto& [rows, key] : filled) rows->Delete(key).IgnoreError();
  RILL_RETURN_IF_ERROR(status);
  RILL_RETURN_IF_ERROR(NameDims(parts, out));
  return SetBufferIds(parts, std::move(ids), out);
}

}  // namespace rill::replay_internal
