// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/index_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/index.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_layout.h"

namespace rill::ops_internal {
namespace {

using ops::DimIndex;

// More chosen elements than this are taken for a mistake: a list of them is
// made.
constexpr int64_t kMaxChosen = int64_t{1} << 31;

absl::Status OutOfRange(absl::string_view caller, int64_t index,
                        const Shape& shape, int dim) {
  return absl::OutOfRangeError(absl::StrCat(
      caller, ": index ", index, " is outside [", -shape[dim], ", ", shape[dim],
      ") in dimension ", dim, " of batch shape ", shape.ToString()));
}

// How many dimensions an element applies to.
int Consumes(const DimIndex& element) {
  if (const auto* tensor = std::get_if<Tensor>(&element.value())) {
    return tensor->dtype() == DType::kBool ? tensor->rank() : 1;
  }
  return std::holds_alternative<int64_t>(element.value()) ||
         std::holds_alternative<ops::Range>(element.value());
}

}  // namespace

void CopyPieces(Direction direction, const Pieces& pieces, int64_t item_bytes,
                std::byte* first, std::byte* packed) {
  // Strides that never join, so that each coordinate is visited.
  const auto none = std::vector<int64_t>(Shape::kMaxRank, -1);
  const auto packed_strides =
      tensordict_internal::RowMajorStrides(pieces.inner, item_bytes);
  const int64_t inner_bytes = pieces.inner.num_elements() * item_bytes;
  if (inner_bytes == 0) return;
  const bool is_run = tensordict_internal::IsRowMajor(
      pieces.inner, pieces.inner_strides, 0, item_bytes);
  const auto copy = [&](std::byte* at, std::byte* pack, int64_t bytes) {
    direction == Direction::kGather
        ? tensordict_internal::CopyRun(pack, at, bytes)
        : tensordict_internal::CopyRun(at, pack, bytes);
  };
  tensordict_internal::ForEachRun(
      pieces.outer, pieces.outer_strides,
      absl::MakeConstSpan(none).first(pieces.outer.rank()), 0,
      [&](int64_t outer, int64_t, int64_t) {
        for (const int64_t offset : pieces.offsets) {
          std::byte* at = first + outer + offset;
          if (is_run) {
            copy(at, packed, inner_bytes);
          } else {
            tensordict_internal::ForEachRun(
                pieces.inner, pieces.inner_strides,
                absl::MakeConstSpan(packed_strides.data(), pieces.inner.rank()),
                item_bytes, [&](int64_t from, int64_t to, int64_t bytes) {
                  copy(at + from, packed + to, bytes);
                });
          }
          packed += inner_bytes;
        }
      });
}

absl::StatusOr<std::vector<int64_t>> WrapIndices(absl::string_view caller,
                                                 const Tensor& indices,
                                                 const Shape& shape, int dim) {
  RILL_RETURN_IF_ERROR(CheckHost(caller, indices));
  if (indices.dtype() != DType::kInt64) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": dtype of an index tensor: got ", DTypeName(indices.dtype()),
        ", want int64, or bool for a mask"));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor flat, indices.Contiguous());
  const int64_t size = shape[dim];
  std::vector<int64_t> wrapped(flat.data<int64_t>(),
                               flat.data<int64_t>() + flat.num_elements());
  for (int64_t& index : wrapped) {
    if (index < -size || index >= size) {
      return OutOfRange(caller, index, shape, dim);
    }
    if (index < 0) index += size;
  }
  return wrapped;
}

absl::Status IndexPlan::AddIndex(absl::string_view caller, int64_t index,
                                 int source) {
  const int64_t size = batch_shape_[source];
  if (index < -size || index >= size) {
    return OutOfRange(caller, index, batch_shape_, source);
  }
  taken_.push_back({source, index < 0 ? index + size : index});
  return absl::OkStatus();
}

absl::Status IndexPlan::AddRange(absl::string_view caller,
                                 const ops::Range& range, int source) {
  if (range.step == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": step of a range of dimension ", source,
                     ": got 0, want ", "another number"));
  }
  const int64_t size = batch_shape_[source];
  const bool forward = range.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const auto place = [&](std::optional<int64_t> index, int64_t open) {
    if (!index.has_value()) return open;
    return std::clamp(*index < 0 ? *index + size : *index, low, high);
  };
  const int64_t begin = place(range.begin, forward ? low : high);
  const int64_t end = place(range.end, forward ? high : low);
  const int64_t distance = forward ? end - begin : begin - end;
  // -min does not fit.
  const int64_t step =
      std::max(range.step, -std::numeric_limits<int64_t>::max());
  Dim dim = {source};
  dim.size = distance <= 0 ? 0 : (distance - 1) / std::abs(step) + 1;
  dim.begin = dim.size == 0 ? 0 : begin;
  dim.step = dim.size <= 1 ? 1 : step;
  dims_.push_back(std::move(dim));
  return absl::OkStatus();
}

void IndexPlan::AddWhole(int source) {
  Dim dim = {source};
  dim.size = batch_shape_[source];
  dims_.push_back(std::move(dim));
}

absl::Status IndexPlan::AddMask(absl::string_view caller, const Tensor& mask,
                                int source) {
  RILL_RETURN_IF_ERROR(CheckHost(caller, mask));
  const Shape covered =
      batch_shape_.Prefix(source + mask.rank()).Suffix(source);
  if (!(mask.shape() == covered)) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": shape of a mask: got ", mask.shape().ToString(),
                     ", want ", covered.ToString(), " as dimensions from ",
                     source, " on of batch shape ", batch_shape_.ToString()));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor flat, mask.Contiguous());
  const int rank = mask.rank();
  std::vector<std::vector<int64_t>> chosen(std::max(rank, 1));
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < flat.num_elements(); ++i) {
    if (flat.raw_data()[i] != std::byte{0}) {
      for (int d = 0; d < rank; ++d) chosen[d].push_back(at[d]);
      if (rank == 0) chosen[0].push_back(0);  // In a new dimension of size 1.
    }
    for (int d = rank - 1; d >= 0 && ++at[d] == covered[d]; --d) at[d] = 0;
  }
  for (size_t d = 0; d < chosen.size(); ++d) {
    Dim dim = {rank == 0 ? -1 : source + static_cast<int>(d)};
    dim.chosen_shape = {static_cast<int64_t>(chosen[d].size())};
    dim.chosen = std::move(chosen[d]);
    dims_.push_back(std::move(dim));
  }
  copies_ = true;
  return absl::OkStatus();
}

absl::Status IndexPlan::AddIndices(absl::string_view caller,
                                   const Tensor& indices, int source) {
  RILL_ASSIGN_OR_RETURN(std::vector<int64_t> chosen,
                        WrapIndices(caller, indices, batch_shape_, source));
  if (indices.rank() == 0) return AddIndex(caller, chosen[0], source);
  Dim dim = {source};
  dim.chosen_shape = indices.shape();
  dim.chosen = std::move(chosen);
  dims_.push_back(std::move(dim));
  copies_ = true;
  return absl::OkStatus();
}

absl::Status IndexPlan::Add(absl::string_view caller, const DimIndex& element,
                            int* source) {
  const int at = *source;
  *source += Consumes(element);
  if (const auto* index = std::get_if<int64_t>(&element.value())) {
    return AddIndex(caller, *index, at);
  }
  if (const auto* range = std::get_if<ops::Range>(&element.value())) {
    return AddRange(caller, *range, at);
  }
  if (const auto* tensor = std::get_if<Tensor>(&element.value())) {
    return tensor->dtype() == DType::kBool ? AddMask(caller, *tensor, at)
                                           : AddIndices(caller, *tensor, at);
  }
  dims_.push_back({-1});  // kNewAxis: the caller has dealt with kEllipsis.
  return absl::OkStatus();
}

// Gives all chosen lists one shape, and dims_ its place in the result.
absl::Status IndexPlan::Broadcast(absl::string_view caller) {
  int rank = 0;
  for (const Dim& dim : dims_) rank = std::max(rank, dim.chosen_shape.rank());
  std::vector<int64_t> sizes(rank, 1);
  for (const Dim& dim : dims_) {
    const int added = rank - dim.chosen_shape.rank();
    for (int d = 0; dim.chosen.has_value() && d + added < rank; ++d) {
      const int64_t size = dim.chosen_shape[d];
      int64_t& common = sizes[d + added];
      if (size == 1 || size == common) continue;
      if (common != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            caller, ": index tensors: got sizes ", common, " and ", size,
            " in one dimension, want shapes that broadcast"));
      }
      common = size;
    }
  }
  RILL_ASSIGN_OR_RETURN(const Shape common, MakeShape(caller, sizes));
  num_chosen_ = common.num_elements();
  if (num_chosen_ > kMaxChosen) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": index tensors: got ", num_chosen_, " elements of shape ",
        common.ToString(), ", want at most ", kMaxChosen));
  }
  for (Dim& dim : dims_) {
    if (!dim.chosen.has_value()) continue;
    if (!(dim.chosen_shape == common)) {
      RILL_ASSIGN_OR_RETURN(
          const Tensor list,
          Tensor::From<int64_t>(*dim.chosen, dim.chosen_shape));
      RILL_ASSIGN_OR_RETURN(const Tensor wide, list.Expand(common));
      RILL_ASSIGN_OR_RETURN(const Tensor flat, wide.Clone());
      dim.chosen->assign(flat.data<int64_t>(),
                         flat.data<int64_t>() + num_chosen_);
      dim.chosen_shape = common;
    }
  }
  return absl::OkStatus();
}

absl::Status IndexPlan::Finish(absl::string_view caller) {
  Shape block;
  if (copies_) {
    RILL_RETURN_IF_ERROR(Broadcast(caller));
    const auto is_chosen = [](const Dim& dim) {
      return dim.chosen.has_value();
    };
    const auto first = std::find_if(dims_.begin(), dims_.end(), is_chosen);
    const auto last = std::find_if_not(first, dims_.end(), is_chosen);
    const bool together = std::none_of(last, dims_.end(), is_chosen);
    block_at_ = together ? static_cast<int>(first - dims_.begin()) : 0;
    block = first->chosen_shape;
  }
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims_) {
    if (!dim.chosen.has_value()) sizes.push_back(dim.size);
  }
  sizes.insert(sizes.begin() + block_at_, block.sizes().begin(),
               block.sizes().end());
  RILL_ASSIGN_OR_RETURN(shape_, MakeShape(caller, sizes));
  return absl::OkStatus();
}

absl::StatusOr<IndexPlan> IndexPlan::Create(absl::string_view caller,
                                            const Shape& batch_shape,
                                            absl::Span<const DimIndex> index) {
  int64_t consumed = 0;
  int ellipses = 0;
  for (const DimIndex& element : index) {
    consumed += Consumes(element);
    ellipses += std::holds_alternative<ops::Ellipsis>(element.value());
  }
  if (consumed > batch_shape.rank() || ellipses > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": index of batch shape ", batch_shape.ToString(),
        ": got elements for ", consumed, " dimensions and ", ellipses,
        " ellipses, want at most ", batch_shape.rank(), " and 1"));
  }
  const int left = batch_shape.rank() - static_cast<int>(consumed);
  IndexPlan plan;
  plan.batch_shape_ = batch_shape;
  int source = 0;
  for (const DimIndex& element : index) {
    if (std::holds_alternative<ops::Ellipsis>(element.value())) {
      for (int i = 0; i < left; ++i) plan.AddWhole(source++);
    } else {
      RILL_RETURN_IF_ERROR(plan.Add(caller, element, &source));
    }
  }
  while (source < batch_shape.rank()) plan.AddWhole(source++);
  RILL_RETURN_IF_ERROR(plan.Finish(caller));
  return plan;
}

absl::StatusOr<std::optional<TensorDict>> IndexPlan::InSteps(
    const TensorDict& dict) const {
  for (const Dim& dim : dims_) {
    if (dim.chosen.has_value() || dim.step != 1) return std::nullopt;
  }
  TensorDict result = dict;
  for (auto taken = taken_.rbegin(); taken != taken_.rend(); ++taken) {
    RILL_ASSIGN_OR_RETURN(result,
                          result.SelectDim(taken->first, taken->second));
  }
  for (size_t d = 0; d < dims_.size(); ++d) {
    const Dim& dim = dims_[d];
    const int at = static_cast<int>(d);
    if (dim.source < 0) {
      RILL_ASSIGN_OR_RETURN(result, result.Unsqueeze(at));
    } else if (dim.size != batch_shape_[dim.source]) {
      RILL_ASSIGN_OR_RETURN(result,
                            result.Slice(at, dim.begin, dim.begin + dim.size));
    }
  }
  return std::optional<TensorDict>(std::move(result));
}

const std::vector<int64_t>* IndexPlan::rows() const {
  if (dims_.empty() || !dims_[0].chosen.has_value() || dims_[0].source != 0 ||
      !taken_.empty()) {
    return nullptr;
  }
  for (size_t d = 1; d < dims_.size(); ++d) {
    const Dim& dim = dims_[d];
    if (dim.chosen.has_value() || dim.source < 0 || dim.begin != 0 ||
        dim.step != 1 || dim.size != batch_shape_[dim.source]) {
      return nullptr;
    }
  }
  return &*dims_[0].chosen;
}

absl::StatusOr<Shape> IndexPlan::ResultShape(const Tensor& leaf) const {
  std::vector<int64_t> sizes(shape_.sizes().begin(), shape_.sizes().end());
  const absl::Span<const int64_t> all = leaf.shape().sizes();
  sizes.insert(sizes.end(), all.begin() + batch_shape_.rank(), all.end());
  return MakeShape("ops::At", sizes);
}

absl::StatusOr<Tensor> IndexPlan::View(const Tensor& leaf) const {
  RILL_ASSIGN_OR_RETURN(const Shape shape, ResultShape(leaf));
  if (shape.num_elements() == 0) return Restrided(leaf, shape, {}, 0);
  const absl::Span<const int64_t> strides = leaf.strides_bytes();
  int64_t offset = 0;
  for (const auto& [dim, index] : taken_) offset += index * strides[dim];
  std::vector<int64_t> result;
  for (const Dim& dim : dims_) {
    const int64_t stride = dim.source < 0 ? 0 : strides[dim.source];
    offset += dim.begin * stride;
    result.push_back(stride * dim.step);
  }
  result.insert(result.end(), strides.begin() + batch_shape_.rank(),
                strides.end());
  return Restrided(leaf, shape, result, offset);
}

void IndexPlan::Copy(Direction direction, const Tensor& leaf,
                     const Tensor& packed) const {
  if (packed.num_elements() == 0) return;
  const absl::Span<const int64_t> strides = leaf.strides_bytes();
  int64_t first = 0;
  for (const auto& [dim, index] : taken_) first += index * strides[dim];
  std::vector<int64_t> offsets(num_chosen_, 0);
  std::vector<int64_t> sizes;
  std::vector<int64_t> view_strides;
  for (const Dim& dim : dims_) {
    const int64_t stride = dim.source < 0 ? 0 : strides[dim.source];
    if (dim.chosen.has_value()) {
      for (int64_t i = 0; i < num_chosen_; ++i) {
        offsets[i] += (*dim.chosen)[i] * stride;
      }
    } else {
      first += dim.begin * stride;
      sizes.push_back(dim.size);
      view_strides.push_back(stride * dim.step);
    }
  }
  for (int d = batch_shape_.rank(); d < leaf.rank(); ++d) {
    sizes.push_back(leaf.shape()[d]);
    view_strides.push_back(strides[d]);
  }
  Pieces pieces;
  pieces.offsets = offsets;
  // All fit, as the result's shape has them too.
  const absl::Span<const int64_t> all = sizes;
  pieces.outer = *Shape::Create(all.first(block_at_));
  pieces.inner = *Shape::Create(all.subspan(block_at_));
  pieces.outer_strides.assign(view_strides.begin(),
                              view_strides.begin() + block_at_);
  pieces.inner_strides.assign(view_strides.begin() + block_at_,
                              view_strides.end());
  CopyPieces(direction, pieces, DTypeSize(leaf.dtype()),
             leaf.raw_data() + first, packed.raw_data());
}

}  // namespace rill::ops_internal
