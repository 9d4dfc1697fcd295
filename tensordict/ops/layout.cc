// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/layout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_layout.h"

namespace rill::ops_internal {

absl::StatusOr<int> WrapDim(absl::string_view caller, const Shape& shape,
                            int dim) {
  if (dim >= -shape.rank() && dim < shape.rank()) {
    return dim < 0 ? dim + shape.rank() : dim;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": dimension of shape ", shape.ToString(), ": got ", dim,
      ", want one in [", -shape.rank(), ", ", shape.rank(), ")"));
}

absl::StatusOr<std::vector<int>> WrapDims(absl::string_view caller,
                                          const Shape& shape,
                                          absl::Span<const int> dims) {
  std::vector<int> wrapped;
  uint32_t seen = 0;
  for (const int dim : dims) {
    RILL_ASSIGN_OR_RETURN(const int at, WrapDim(caller, shape, dim));
    if ((seen >> at & 1) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          caller, ": dimensions of shape ", shape.ToString(), ": got {",
          absl::StrJoin(dims, ", "), "}, want none of them twice"));
    }
    seen |= 1u << at;
    wrapped.push_back(at);
  }
  return wrapped;
}

absl::Status CheckHost(absl::string_view caller, const Tensor& tensor) {
  if (tensor.is_host()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": got a tensor on ", tensor.device().ToString(),
                   ", want host memory; use To(Device::Cpu()) first"));
}

absl::StatusOr<Shape> MakeShape(absl::string_view caller,
                                absl::Span<const int64_t> sizes) {
  absl::StatusOr<Shape> shape = Shape::Create(sizes);
  if (shape.ok()) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": ", shape.status().message()));
}

absl::StatusOr<Tensor> Restrided(const Tensor& tensor, const Shape& shape,
                                 absl::Span<const int64_t> strides_bytes,
                                 int64_t offset) {
  if (shape.num_elements() == 0) {
    // No byte is looked at: any place will do.
    return tensor.is_valid()
               ? Tensor::View(tensor.buffer(), tensor.dtype(), shape, 0)
               : Tensor::Empty(tensor.dtype(), shape);
  }
  const int64_t first = tensor.raw_data() - tensor.buffer()->data();
  return Tensor::View(tensor.buffer(), tensor.dtype(), shape, first + offset,
                      strides_bytes);
}

absl::StatusOr<Tensor> Take(absl::string_view caller, const Tensor& from,
                            absl::Span<const Places> places) {
  RILL_RETURN_IF_ERROR(CheckHost(caller, from));
  const int inner = places.empty() ? 0 : places.back().dim + 1;
  const int64_t item = DTypeSize(from.dtype());
  Tensor source = from;
  if (!tensordict_internal::IsRowMajor(from.shape(), from.strides_bytes(),
                                       inner, item)) {
    RILL_ASSIGN_OR_RETURN(source, from.Contiguous());
  }
  std::vector<int64_t> sizes(from.shape().sizes().begin(),
                             from.shape().sizes().end());
  for (const Places& chosen : places) {
    sizes[chosen.dim] = static_cast<int64_t>(chosen.places.size());
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, MakeShape(caller, sizes));
  RILL_ASSIGN_OR_RETURN(Tensor result, Tensor::Empty(from.dtype(), shape));
  if (result.num_elements() == 0) return result;

  std::vector<std::vector<int64_t>> offsets(inner);
  for (const Places& chosen : places) offsets[chosen.dim] = chosen.places;
  int64_t run = item;
  for (int d = inner; d < shape.rank(); ++d) run *= shape[d];
  for (int d = 0; d < inner; ++d) {
    if (offsets[d].empty()) {
      for (int64_t i = 0; i < shape[d]; ++i) offsets[d].push_back(i);
    }
    for (int64_t& offset : offsets[d]) offset *= source.strides_bytes()[d];
  }
  std::byte* to = result.raw_data();
  const auto copy = [&](auto&& self, int dim, const std::byte* at) -> void {
    if (dim == inner) {
      tensordict_internal::CopyRun(to, at, run);
      to += run;
      return;
    }
    for (const int64_t offset : offsets[dim]) self(self, dim + 1, at + offset);
  };
  copy(copy, 0, source.raw_data());
  return result;
}

}  // namespace rill::ops_internal
