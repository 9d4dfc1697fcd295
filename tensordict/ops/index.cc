// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
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
#include "rill/tensordict/ops/index_plan.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::CheckHost;
using ops_internal::Direction;
using ops_internal::IndexPlan;

absl::StatusOr<Tensor> AtLeaf(const IndexPlan& plan, const Tensor& leaf) {
  if (!plan.copies()) return plan.View(leaf);
  RILL_RETURN_IF_ERROR(CheckHost("ops::At", leaf));
  RILL_ASSIGN_OR_RETURN(const Shape shape, plan.ResultShape(leaf));
  RILL_ASSIGN_OR_RETURN(Tensor result, Tensor::Empty(leaf.dtype(), shape));
  plan.Copy(Direction::kGather, leaf, result);
  return result;
}

// A write that has been checked.
struct Write {
  Tensor target;  // A view of the elements, or the whole leaf if plan.copies().
  Tensor source;  // In the shape of the result; contiguous if plan.copies().
};

// `source_rank`: of the source's own batch shape.
absl::StatusOr<Write> PrepareWrite(const IndexPlan& plan, int rank,
                                   const Tensor& leaf, const Tensor& source,
                                   int source_rank) {
  RILL_ASSIGN_OR_RETURN(const Shape shape, plan.ResultShape(leaf));
  if (!(source.shape().Suffix(source_rank) == leaf.shape().Suffix(rank)) ||
      source.dtype() != leaf.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::SetAt: got ", DTypeName(source.dtype()),
        source.shape().ToString(), ", want ", DTypeName(leaf.dtype()),
        shape.ToString(), " but for batch dimensions of size 1"));
  }
  RILL_ASSIGN_OR_RETURN(Tensor wide, source.Expand(shape));
  if (!plan.copies()) {
    RILL_ASSIGN_OR_RETURN(Tensor view, plan.View(leaf));
    RILL_RETURN_IF_ERROR(view.CheckCopyFrom(wide));
    return Write{std::move(view), std::move(wide)};
  }
  RILL_RETURN_IF_ERROR(CheckHost("ops::SetAt", leaf));
  RILL_RETURN_IF_ERROR(CheckHost("ops::SetAt", source));
  RILL_RETURN_IF_ERROR(leaf.CheckCopyFrom(leaf));  // Can be written to.
  const bool shares = wide.buffer() == leaf.buffer();
  RILL_ASSIGN_OR_RETURN(wide, shares ? wide.Clone() : wide.Contiguous());
  return Write{leaf, std::move(wide)};
}

absl::Status CarryOut(const IndexPlan& plan, const Write& write) {
  if (!plan.copies()) return write.target.CopyFrom(write.source);
  plan.Copy(Direction::kScatter, write.target, write.source);
  return absl::OkStatus();
}

}  // namespace

DimIndex::DimIndex(absl::Span<const int64_t> indices) {
  absl::StatusOr<Tensor> list =
      Tensor::From<int64_t>(indices, {static_cast<int64_t>(indices.size())});
  // Without memory: an index tensor that every use refuses.
  value_ = list.ok() ? *std::move(list) : Tensor();
}

absl::StatusOr<TensorDict> At(const TensorDict& dict,
                              absl::Span<const DimIndex> index) {
  RILL_ASSIGN_OR_RETURN(
      const IndexPlan plan,
      IndexPlan::Create("ops::At", dict.batch_shape(), index));
  if (const std::vector<int64_t>* rows = plan.rows()) {
    RILL_ASSIGN_OR_RETURN(TensorDict result, dict.Gather(*rows));
    if (result.batch_shape() == plan.shape()) return result;
    return result.Reshape(plan.shape());
  }
  RILL_ASSIGN_OR_RETURN(std::optional<TensorDict> result, plan.InSteps(dict));
  if (result.has_value()) return *std::move(result);
  return dict.MapShape(plan.shape(),
                       [&](const Tensor& leaf) { return AtLeaf(plan, leaf); });
}

absl::StatusOr<Tensor> At(const Tensor& tensor,
                          absl::Span<const DimIndex> index) {
  RILL_ASSIGN_OR_RETURN(const IndexPlan plan,
                        IndexPlan::Create("ops::At", tensor.shape(), index));
  return AtLeaf(plan, tensor);
}

absl::Status SetAt(const TensorDict& dict, absl::Span<const DimIndex> index,
                   const TensorDict& source) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(const IndexPlan plan,
                        IndexPlan::Create("ops::SetAt", batch, index));
  for (const TensorDict* side : {&dict, &source}) {
    RILL_RETURN_IF_ERROR(
        ops_internal::CheckNone("ops::SetAt", *side,
                                {EntryKind::kNonTensorStack,
                                 EntryKind::kLazyStack, EntryKind::kRagged}));
  }
  std::vector<Write> writes;
  absl::Status status;
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!status.ok()) return;
    const auto prepare = [&]() -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const Tensor from, source.Get(key));
      RILL_ASSIGN_OR_RETURN(Write write,
                            PrepareWrite(plan, batch.rank(), leaf, from,
                                         source.batch_shape().rank()));
      writes.push_back(std::move(write));
      return absl::OkStatus();
    };
    status = prepare();
    if (!status.ok()) {
      status = absl::Status(
          status.code(),
          absl::StrCat(status.message(), "; at key \"", key, "\""));
    }
  });
  RILL_RETURN_IF_ERROR(status);
  if (source.num_leaves() != static_cast<int64_t>(writes.size())) {
    for (const std::string& key : source.LeafKeys()) {
      RILL_RETURN_IF_ERROR(dict.Get(key).status()) << "in ops::SetAt";
    }
  }
  for (const Write& write : writes) {
    RILL_RETURN_IF_ERROR(CarryOut(plan, write));
  }
  return absl::OkStatus();
}

absl::Status SetAt(const Tensor& tensor, absl::Span<const DimIndex> index,
                   const Tensor& source) {
  RILL_ASSIGN_OR_RETURN(const IndexPlan plan,
                        IndexPlan::Create("ops::SetAt", tensor.shape(), index));
  RILL_ASSIGN_OR_RETURN(
      const Write write,
      PrepareWrite(plan, tensor.rank(), tensor, source, source.rank()));
  return CarryOut(plan, write);
}

}  // namespace rill::ops
