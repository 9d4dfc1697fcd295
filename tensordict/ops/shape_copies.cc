// SPDX-License-Identifier: Apache-2.0
// Operations on batch dimensions that copy.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/scalar.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::CheckHost;
using ops_internal::MakeShape;
using ops_internal::Places;
using ops_internal::Take;
using ops_internal::WrapDim;
using ops_internal::WrapDims;

absl::StatusOr<TensorDict> TakeAll(absl::string_view caller,
                                   const TensorDict& dict,
                                   absl::Span<const Places> places) {
  Shape shape = dict.batch_shape();
  for (const Places& chosen : places) {
    shape =
        shape.WithSize(chosen.dim, static_cast<int64_t>(chosen.places.size()));
  }
  RILL_RETURN_IF_ERROR(MakeShape(caller, shape.sizes()).status());
  return dict.MapShape(
      shape, [&](const Tensor& leaf) { return Take(caller, leaf, places); });
}

absl::Status CheckRepeats(absl::string_view caller,
                          absl::Span<const int64_t> repeats, int64_t count) {
  const bool fits = static_cast<int64_t>(repeats.size()) == count &&
                    std::all_of(repeats.begin(), repeats.end(),
                                [](int64_t n) { return n >= 0; });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": repeats: got {", absl::StrJoin(repeats, ", "),
                   "}, want ", count, " numbers >= 0"));
}

// Rows that a result of `size` x `repeats` has in one dimension: bounded, as a
// list of them is made.
absl::StatusOr<int64_t> CountRows(absl::string_view caller, int64_t size,
                                  int64_t repeats) {
  constexpr int64_t kMaxRows = int64_t{1} << 31;
  int64_t rows;
  if (!__builtin_mul_overflow(size, repeats, &rows) && rows <= kMaxRows) {
    return rows;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": rows of the result: got ", size, " x ", repeats,
                   ", want at most ", kMaxRows));
}

}  // namespace

absl::StatusOr<TensorDict> Repeat(const TensorDict& dict,
                                  absl::Span<const int64_t> repeats) {
  const Shape& batch = dict.batch_shape();
  RILL_RETURN_IF_ERROR(CheckRepeats("ops::Repeat", repeats, batch.rank()));
  std::vector<int64_t> sizes;
  for (int d = 0; d < batch.rank(); ++d) {
    RILL_ASSIGN_OR_RETURN(const int64_t rows,
                          CountRows("ops::Repeat", batch[d], repeats[d]));
    sizes.push_back(rows);
  }
  RILL_RETURN_IF_ERROR(MakeShape("ops::Repeat", sizes).status());
  std::vector<Places> places;
  for (int d = 0; d < batch.rank(); ++d) {
    if (repeats[d] == 1) continue;
    places.push_back({d, std::vector<int64_t>(sizes[d])});
    for (int64_t i = 0; i < sizes[d]; ++i)
      places.back().places[i] = i % batch[d];
  }
  return TakeAll("ops::Repeat", dict, places);
}

absl::StatusOr<TensorDict> RepeatInterleave(const TensorDict& dict,
                                            absl::Span<const int64_t> repeats,
                                            int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::RepeatInterleave", batch, dim));
  RILL_RETURN_IF_ERROR(
      CheckRepeats("ops::RepeatInterleave", repeats, batch[dim]));
  int64_t rows = 0;
  for (const int64_t n : repeats) {
    RILL_RETURN_IF_ERROR(CountRows("ops::RepeatInterleave", 1, n).status());
    RILL_ASSIGN_OR_RETURN(rows,
                          CountRows("ops::RepeatInterleave", 1, rows + n));
  }
  std::vector<Places> places = {{dim, {}}};
  for (size_t i = 0; i < repeats.size(); ++i) {
    places[0].places.insert(places[0].places.end(), repeats[i],
                            static_cast<int64_t>(i));
  }
  return TakeAll("ops::RepeatInterleave", dict, places);
}

absl::StatusOr<TensorDict> RepeatInterleave(const TensorDict& dict,
                                            int64_t repeats, int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::RepeatInterleave", batch, dim));
  return RepeatInterleave(dict, std::vector<int64_t>(batch[dim], repeats), dim);
}

absl::StatusOr<TensorDict> Roll(const TensorDict& dict,
                                absl::Span<const int64_t> shifts,
                                absl::Span<const int> dims) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(const std::vector<int> rolled,
                        WrapDims("ops::Roll", batch, dims));
  if (shifts.size() != dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("ops::Roll: number of shifts: got ", shifts.size(),
                     ", want ", dims.size(), " as of dimensions"));
  }
  std::vector<Places> places;
  for (size_t k = 0; k < rolled.size(); ++k) {
    const int64_t size = batch[rolled[k]];
    if (size == 0) continue;
    RILL_RETURN_IF_ERROR(CountRows("ops::Roll", size, 1).status());
    const int64_t shift = (shifts[k] % size + size) % size;
    places.push_back({rolled[k], std::vector<int64_t>(size)});
    for (int64_t i = 0; i < size; ++i) {
      places.back().places[i] = i < shift ? i - shift + size : i - shift;
    }
  }
  std::sort(places.begin(), places.end(),
            [](const Places& a, const Places& b) { return a.dim < b.dim; });
  return TakeAll("ops::Roll", dict, places);
}

absl::StatusOr<TensorDict> Pad(const TensorDict& dict,
                               absl::Span<const PadSize> sizes,
                               const Scalar& value) {
  const Shape& batch = dict.batch_shape();
  bool fits = static_cast<int>(sizes.size()) <= batch.rank();
  std::vector<int64_t> padded(batch.sizes().begin(), batch.sizes().end());
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    fits = sizes[d].before >= 0 && sizes[d].after >= 0 &&
           !__builtin_add_overflow(padded[d], sizes[d].before, &padded[d]) &&
           !__builtin_add_overflow(padded[d], sizes[d].after, &padded[d]);
  }
  if (!fits) {
    const auto text = [](std::string* out, const PadSize& size) {
      absl::StrAppend(out, "{", size.before, ", ", size.after, "}");
    };
    return absl::InvalidArgumentError(
        absl::StrCat("ops::Pad: sizes for batch shape ", batch.ToString(),
                     ": got {", absl::StrJoin(sizes, ", ", text),
                     "}, want at most ", batch.rank(), " pairs >= 0"));
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, MakeShape("ops::Pad", padded));
  const auto pad_with = [&](const Scalar& with, const TensorDict& from) {
    return from.MapShape(
        shape, [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
          RILL_RETURN_IF_ERROR(CheckHost("ops::Pad", leaf));
          std::vector<int64_t> all = padded;
          const absl::Span<const int64_t> tail = leaf.shape().sizes();
          all.insert(all.end(), tail.begin() + batch.rank(), tail.end());
          RILL_ASSIGN_OR_RETURN(const Shape leaf_shape,
                                MakeShape("ops::Pad", all));
          RILL_ASSIGN_OR_RETURN(Tensor result,
                                Full(leaf.dtype(), leaf_shape, with));
          Tensor inside = result;
          for (size_t d = 0; d < sizes.size(); ++d) {
            const int dim = static_cast<int>(d);
            RILL_ASSIGN_OR_RETURN(inside,
                                  inside.Slice(dim, sizes[d].before,
                                               sizes[d].before + batch[dim]));
          }
          RILL_RETURN_IF_ERROR(inside.CopyFrom(leaf));
          return result;
        });
  };
  const std::vector<std::string> texts =
      ops_internal::KeysOf(dict, {EntryKind::kNonTensorStack});
  if (texts.empty()) return pad_with(value, dict);
  // Values a row are padded by null, which is a zero among their indices.
  RILL_ASSIGN_OR_RETURN(TensorDict result, pad_with(0, dict));
  RILL_ASSIGN_OR_RETURN(
      const TensorDict others,
      dict.Exclude(std::vector<absl::string_view>(texts.begin(), texts.end())));
  RILL_ASSIGN_OR_RETURN(const TensorDict exact, pad_with(value, others));
  RILL_RETURN_IF_ERROR(result.Update(exact));
  return result;
}

}  // namespace rill::ops
