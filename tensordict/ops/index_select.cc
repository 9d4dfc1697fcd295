// SPDX-License-Identifier: Apache-2.0
// Choices of rows by a mask or by an index tensor of the batch's rank.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ops/index.h"
#include "rill/tensordict/ops/index_plan.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_layout.h"

namespace rill::ops {
namespace {

using ops_internal::CheckHost;

absl::Status CheckMask(absl::string_view caller, const Tensor& mask,
                       const Shape& shape) {
  RILL_RETURN_IF_ERROR(CheckHost(caller, mask));
  if (mask.dtype() == DType::kBool && shape.StartsWith(mask.shape())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": mask: got ", DTypeName(mask.dtype()), mask.shape().ToString(),
      ", want bool of shape ", shape.ToString(), " or its beginning"));
}

}  // namespace

absl::StatusOr<TensorDict> MaskedSelect(const TensorDict& dict,
                                        const Tensor& mask) {
  RILL_RETURN_IF_ERROR(
      CheckMask("ops::MaskedSelect", mask, dict.batch_shape()));
  return At(dict, {DimIndex(mask)});
}

absl::StatusOr<TensorDict> GatherAlong(const TensorDict& dict, int dim,
                                       const Tensor& index) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim,
                        ops_internal::WrapDim("ops::GatherAlong", batch, dim));
  bool fits = index.rank() == batch.rank();
  for (int d = 0; fits && d < batch.rank(); ++d) {
    fits = d == dim || index.shape()[d] <= batch[d];
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::GatherAlong: shape of the index: got ", index.shape().ToString(),
        ", want the rank of batch shape ", batch.ToString(),
        " and sizes no longer but in dimension ", dim));
  }
  RILL_ASSIGN_OR_RETURN(
      const std::vector<int64_t> places,
      ops_internal::WrapIndices("ops::GatherAlong", index, batch, dim));
  return dict.MapShape(
      index.shape(), [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        RILL_RETURN_IF_ERROR(CheckHost("ops::GatherAlong", leaf));
        const Shape tail = leaf.shape().Suffix(batch.rank());
        RILL_ASSIGN_OR_RETURN(
            Tensor result,
            Tensor::Empty(leaf.dtype(), index.shape().Concat(tail)));
        std::vector<int64_t> offsets = places;
        std::vector<int64_t> at(batch.rank(), 0);
        for (int64_t& offset : offsets) {
          offset *= leaf.strides_bytes()[dim];
          for (int d = 0; d < batch.rank(); ++d) {
            if (d != dim) offset += at[d] * leaf.strides_bytes()[d];
          }
          for (int d = batch.rank() - 1; d >= 0 && ++at[d] == index.shape()[d];
               --d) {
            at[d] = 0;
          }
        }
        const auto strides = leaf.strides_bytes().subspan(batch.rank());
        ops_internal::CopyPieces(
            ops_internal::Direction::kGather,
            {.offsets = offsets,
             .inner = tail,
             .inner_strides = {strides.begin(), strides.end()}},
            DTypeSize(leaf.dtype()), leaf.raw_data(), result.raw_data());
        return result;
      });
}

absl::StatusOr<Tensor> Where(const Tensor& mask, const Tensor& a,
                             const Tensor& b) {
  RILL_RETURN_IF_ERROR(CheckMask("ops::Where", mask, a.shape()));
  RILL_RETURN_IF_ERROR(CheckHost("ops::Where", a));
  RILL_RETURN_IF_ERROR(CheckHost("ops::Where", b));
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) {
    return absl::InvalidArgumentError(
        absl::StrCat("ops::Where: got ", DTypeName(b.dtype()),
                     b.shape().ToString(), ", want ", DTypeName(a.dtype()),
                     a.shape().ToString(), " as the other side"));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor flags, mask.Contiguous());
  RILL_ASSIGN_OR_RETURN(const Tensor chosen, a.Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor result, b.Clone());
  if (result.num_elements() == 0) return result;
  const int64_t run = result.size_bytes() / flags.num_elements();
  for (int64_t i = 0; i < flags.num_elements(); ++i) {
    if (flags.raw_data()[i] == std::byte{0}) continue;
    tensordict_internal::CopyRun(result.raw_data() + i * run,
                                 chosen.raw_data() + i * run, run);
  }
  return result;
}

absl::StatusOr<TensorDict> Where(const Tensor& mask, const TensorDict& a,
                                 const TensorDict& b) {
  RILL_RETURN_IF_ERROR(CheckMask("ops::Where", mask, a.batch_shape()));
  if (!(a.batch_shape() == b.batch_shape())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Where: batch shape: got ", b.batch_shape().ToString(), ", want ",
        a.batch_shape().ToString(), " as the other side's"));
  }
  for (const TensorDict* side : {&a, &b}) {
    RILL_RETURN_IF_ERROR(ops_internal::CheckNone(
        "ops::Where", *side, {EntryKind::kLazyStack, EntryKind::kRagged}));
  }
  const TensorDict* const others[] = {&b};
  RILL_ASSIGN_OR_RETURN(
      TensorDict result,
      ops_internal::MapTensors(
          "ops::Where", a, {.others = others, .same_keys = true},
          [&](absl::string_view, absl::Span<const Tensor> sides) {
            return Where(mask, sides[0], sides[1]);
          }));
  // Values a row are chosen as rows are.
  for (const std::string& key :
       ops_internal::KeysOf(a, {EntryKind::kNonTensorStack})) {
    RILL_ASSIGN_OR_RETURN(const NonTensorStack left, a.GetNonTensorStack(key));
    RILL_ASSIGN_OR_RETURN(const NonTensorStack right, b.GetNonTensorStack(key));
    RILL_ASSIGN_OR_RETURN(const NonTensorStack both,
                          NonTensorStack::Stack({left, right}, 0));
    RILL_ASSIGN_OR_RETURN(
        NonTensorStack chosen,
        both.MapIndex([&](const Tensor& index) -> absl::StatusOr<Tensor> {
          RILL_ASSIGN_OR_RETURN(const Tensor x, index.Index(0));
          RILL_ASSIGN_OR_RETURN(const Tensor y, index.Index(1));
          return Where(mask, x, y);
        }));
    RILL_RETURN_IF_ERROR(result.Set(key, std::move(chosen)));
  }
  return result;
}

}  // namespace rill::ops
