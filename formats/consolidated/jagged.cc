// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated/jagged.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

// A ragged tensor has its rows one behind the other, each row-major. A jagged
// one has them joined along one dimension. Where that is the first of a row,
// both are the same bytes in the same order, hence the views. In any other
// dimension each row's bytes are spread over the joined tensor, in `outer` runs
// of length x `inner` bytes.

namespace rill::formats_internal {
namespace {

// Along one dimension of a tensor, row-major: what is before and behind it.
struct Around {
  int64_t outer = 1;  // Elements of the dimensions before.
  int64_t inner = 1;  // Bytes of one index of it.
};

Around AroundOf(const Tensor& values, int dim) {
  Around around;
  around.inner = DTypeSize(values.dtype());
  for (int d = 0; d < values.rank(); ++d) {
    if (d < dim) around.outer *= values.shape()[d];
    if (d > dim) around.inner *= values.shape()[d];
  }
  return around;
}

// copy(in the joined values, in the rows one behind the other, bytes) for each
// run of bytes that both have; row i is [starts[i], starts[i] + lengths[i]).
void ForEachRun(
    const Tensor& values, int dim, absl::Span<const int64_t> starts,
    absl::Span<const int64_t> lengths,
    absl::FunctionRef<void(int64_t joined, int64_t apart, int64_t bytes)>
        copy) {
  if (values.num_elements() == 0) return;
  const Around around = AroundOf(values, dim);
  int64_t apart = 0;
  for (size_t row = 0; row < lengths.size(); ++row) {
    const int64_t bytes = lengths[row] * around.inner;
    if (bytes == 0) continue;  // Where all rows are, no tensor has bytes.
    for (int64_t i = 0; i < around.outer; ++i) {
      copy((i * values.shape()[dim] + starts[row]) * around.inner, apart,
           bytes);
      apart += bytes;
    }
  }
}

// Row i has the sizes of `values`, but lengths[i] in dimension `dim`.
absl::StatusOr<Tensor> TableOf(const Shape& values, int dim,
                               absl::Span<const int64_t> lengths) {
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create({static_cast<int64_t>(lengths.size()), values.rank()}));
  RILL_ASSIGN_OR_RETURN(Tensor table, Tensor::Empty(DType::kInt64, shape));
  int64_t* size = table.data<int64_t>();
  for (const int64_t length : lengths) {
    std::copy(values.sizes().begin(), values.sizes().end(), size);
    size[dim] = length;
    size += values.rank();
  }
  return table;
}

// Offsets ascend within [0, size], and each length fits between two of them:
// ForEachRun relies on that for every byte it touches.
absl::Status CheckRows(int64_t size, absl::Span<const int64_t> offsets,
                       absl::Span<const int64_t> lengths) {
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < end || offsets[i] > size) {
      return InvalidArgument("offset ", i, ": got ", offsets[i],
                             ", want one in [", end, ", ", size, "]");
    }
    end = offsets[i];
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t room = offsets[i + 1] - offsets[i];
    if (lengths[i] >= 0 && lengths[i] <= room) continue;
    return InvalidArgument("length ", i, ": got ", lengths[i],
                           ", want one in [0, ", room, "]");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Jagged> ToJagged(const RaggedTensor& rows) {
  const int rank = rows.row_rank();
  if (rank == 0) {
    return InvalidArgument("got rows without dimensions, want at least one");
  }
  Jagged jagged;
  const auto n = static_cast<size_t>(rows.num_rows());
  const int64_t* const table = rows.shapes().data<int64_t>();
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  if (n > 0) sizes.assign(table, table + rank);
  // Dimension 0 where all rows are equal: that gives a view.
  int num_differing = 0;
  for (int d = 0; d < rank; ++d) {
    for (size_t i = 1; i < n; ++i) {
      if (table[i * rank + d] == sizes[d]) continue;
      jagged.ragged_dim = d;
      ++num_differing;
      break;
    }
  }
  if (num_differing > 1) {
    return InvalidArgument("got rows that differ in ", num_differing,
                           " dimensions, want one");
  }
  std::vector<int64_t> offsets = {0}, lengths;
  for (size_t i = 0; i < n; ++i) {
    lengths.push_back(table[i * rank + jagged.ragged_dim]);
    int64_t end;
    if (__builtin_add_overflow(offsets.back(), lengths.back(), &end)) {
      return InvalidArgument(  // Of rows without elements.
          "got rows whose sizes do not fit in int64 together");
    }
    offsets.push_back(end);
  }
  sizes[jagged.ragged_dim] = offsets.back();
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  RILL_ASSIGN_OR_RETURN(
      jagged.offsets,
      Tensor::From<int64_t>(offsets, {static_cast<int64_t>(offsets.size())}));
  if (jagged.ragged_dim == 0) {
    RILL_ASSIGN_OR_RETURN(jagged.values, rows.values().ViewAs(shape));
    return jagged;
  }
  RILL_ASSIGN_OR_RETURN(const Tensor host, rows.values().To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(jagged.values, Tensor::Empty(rows.dtype(), shape));
  ForEachRun(jagged.values, jagged.ragged_dim, offsets, lengths,
             [&](int64_t joined, int64_t apart, int64_t bytes) {
               std::memcpy(jagged.values.raw_data() + joined,
                           host.raw_data() + apart, bytes);
             });
  return jagged;
}

absl::StatusOr<RaggedTensor> FromJagged(const Tensor& values,
                                        absl::Span<const int64_t> offsets,
                                        absl::Span<const int64_t> lengths,
                                        int ragged_dim) {
  const int64_t size = values.shape()[ragged_dim];
  RILL_RETURN_IF_ERROR(CheckRows(size, offsets, lengths));
  bool is_view = ragged_dim == 0 && offsets.front() == 0;
  int64_t total = 0;
  std::vector<int64_t> taken;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    taken.push_back(lengths.empty() ? offsets[i + 1] - offsets[i] : lengths[i]);
    total += taken.back();
  }
  is_view = is_view && total == size;
  RILL_ASSIGN_OR_RETURN(const Tensor table,
                        TableOf(values.shape(), ragged_dim, taken));
  if (is_view) {
    RILL_ASSIGN_OR_RETURN(const Tensor flat,
                          values.Reshape({values.num_elements()}));
    return RaggedTensor::Create(flat, table);
  }
  const int64_t elements = size == 0 ? 0 : values.num_elements() / size * total;
  RILL_ASSIGN_OR_RETURN(const Tensor apart,
                        Tensor::Empty(values.dtype(), {elements}));
  ForEachRun(values, ragged_dim, offsets, taken,
             [&](int64_t joined, int64_t at, int64_t bytes) {
               std::memcpy(apart.raw_data() + at, values.raw_data() + joined,
                           bytes);
             });
  return RaggedTensor::Create(apart, table);
}

}  // namespace rill::formats_internal
