// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/shape_ops.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::ops {
namespace {

// `batch_shape` in front of what lies behind the leaf's batch dimensions.
absl::StatusOr<Shape> WithBatch(const Tensor& leaf, int old_rank,
                                const Shape& batch_shape) {
  std::vector<int64_t> sizes(batch_shape.sizes().begin(),
                             batch_shape.sizes().end());
  const absl::Span<const int64_t> tail = leaf.shape().sizes();
  sizes.insert(sizes.end(), tail.begin() + old_rank, tail.end());
  return Shape::Create(sizes);
}

}  // namespace

absl::StatusOr<TensorDict> Transpose(const TensorDict& dict, int a, int b) {
  const Shape& batch = dict.batch_shape();
  for (const int dim : {a, b}) {
    if (dim >= 0 && dim < batch.rank()) continue;
    return InvalidArgument("ops::Transpose: dimension of batch shape ",
                           batch.ToString(), ": got ", dim,
                           ", want one in [0, ", batch.rank(), ")");
  }
  RILL_ASSIGN_OR_RETURN(
      TensorDict result,
      dict.MapShape(batch.WithSize(a, batch[b]).WithSize(b, batch[a]),
                    [&](const Tensor& leaf) {
                      std::array<int, Shape::kMaxRank> order;
                      std::iota(order.begin(), order.end(), 0);
                      std::swap(order[a], order[b]);
                      return leaf.Permute(
                          absl::MakeConstSpan(order.data(), leaf.rank()));
                    }));
  std::vector<std::string> names = dict.dim_names();
  if (!names.empty()) {
    std::swap(names[a], names[b]);
    RILL_RETURN_IF_ERROR(result.SetDimNames(std::move(names)));
  }
  return result;
}

absl::StatusOr<TensorDict> Expand(const TensorDict& dict,
                                  const Shape& batch_shape) {
  const Shape& batch = dict.batch_shape();
  const int added = batch_shape.rank() - batch.rank();
  bool fits = added >= 0;
  for (int d = 0; fits && d < batch.rank(); ++d) {
    fits = batch[d] == 1 || batch[d] == batch_shape[d + added];
  }
  if (!fits) {
    return InvalidArgument("ops::Expand: batch shape: got ",
                           batch_shape.ToString(), ", want one that ends like ",
                           batch.ToString(), " but for sizes of 1");
  }
  return dict.MapShape(
      batch_shape, [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        RILL_ASSIGN_OR_RETURN(const Shape shape,
                              WithBatch(leaf, batch.rank(), batch_shape));
        return leaf.Expand(shape);
      });
}

absl::StatusOr<TensorDict> Pad(const TensorDict& dict,
                               absl::Span<const PadSize> sizes) {
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
    return InvalidArgument("ops::Pad: sizes for batch shape ", batch.ToString(),
                           ": got {", absl::StrJoin(sizes, ", ", text),
                           "}, want at most ", batch.rank(), " pairs >= 0");
  }
  const absl::StatusOr<Shape> shape = Shape::Create(padded);
  RILL_RETURN_IF_ERROR(shape.status()) << "in ops::Pad";
  return dict.MapShape(
      *shape, [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        if (!leaf.is_host()) {
          return InvalidArgument(
              "ops::Pad: got a tensor on ", leaf.device().ToString(),
              ", want host memory; use To(Device::Cpu()) first");
        }
        RILL_ASSIGN_OR_RETURN(const Shape whole,
                              WithBatch(leaf, batch.rank(), *shape));
        RILL_ASSIGN_OR_RETURN(Tensor result,
                              Tensor::Zeros(leaf.dtype(), whole));
        Tensor inside = result;
        for (size_t d = 0; d < sizes.size(); ++d) {
          const int dim = static_cast<int>(d);
          RILL_ASSIGN_OR_RETURN(
              inside,
              inside.Slice(dim, sizes[d].before, sizes[d].before + batch[dim]));
        }
        RILL_RETURN_IF_ERROR(inside.CopyFrom(leaf));
        return result;
      });
}

}  // namespace rill::ops
