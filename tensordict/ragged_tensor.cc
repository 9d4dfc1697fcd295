// SPDX-License-Identifier: Apache-2.0
// Elements of all rows lie one behind the other in `values_`; row i is
// [offsets[i], offsets[i + 1]) of them. Offsets are computed once from the
// shapes and shared by copies.
#include "rill/tensordict/ragged_tensor.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// That the rows are at least one, of one dtype, rank and device.
absl::Status CheckAlike(absl::string_view caller,
                        absl::Span<const Tensor> rows) {
  if (rows.empty()) {
    return InvalidArgument(caller, ": number of rows: got 0, want at least 1");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dtype() == rows[0].dtype() &&
        rows[i].rank() == rows[0].rank() &&
        rows[i].device() == rows[0].device()) {
      continue;
    }
    const auto text = [](const Tensor& row) {
      return absl::StrCat(DTypeName(row.dtype()), row.shape().ToString(),
                          " on ", row.device().ToString());
    };
    return InvalidArgument(caller, ": row ", i, ": got ", text(rows[i]),
                           ", want the dtype, rank and device of row 0, ",
                           text(rows[0]));
  }
  return absl::OkStatus();
}

// A tensor of `shape` whose elements are all `value`. Zeros need no cast, so
// they are of any dtype.
absl::StatusOr<Tensor> Full(DType dtype, const Shape& shape, double value) {
  if (value == 0) return Tensor::Zeros(dtype, shape);
  RILL_ASSIGN_OR_RETURN(Tensor one, Tensor::From<double>({value}, {}));
  RILL_ASSIGN_OR_RETURN(one, Cast(one, dtype));
  RILL_ASSIGN_OR_RETURN(one, one.Expand(shape));
  return one.Clone();
}

// The first elements of each dimension of `whole`, as many as `shape` says: a
// view.
absl::StatusOr<Tensor> Corner(Tensor whole, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d) {
    RILL_ASSIGN_OR_RETURN(whole, whole.Slice(d, 0, shape[d]));
  }
  return whole;
}

}  // namespace

absl::StatusOr<Padded> StackPadded(absl::Span<const Tensor> rows, int dim,
                                   double pad_value) {
  constexpr absl::string_view kCaller = "StackPadded";
  RILL_RETURN_IF_ERROR(CheckAlike(kCaller, rows));
  const int rank = rows[0].rank();
  if (dim < 0 || dim > rank || rank == Shape::kMaxRank || !rows[0].is_host()) {
    return InvalidArgument(kCaller, ": dimension for rows of shape ",
                           rows[0].shape().ToString(), " on ",
                           rows[0].device().ToString(), ": got ", dim,
                           ", want one in [0, ", rank, "], a rank below ",
                           Shape::kMaxRank, " and host memory");
  }
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  // The mask repeats nothing: it ends with the last dimension in which rows
  // differ.
  int masked = dim;  // The mask has the rows' dimensions [0, masked).
  for (int d = 0; d < rank; ++d) {
    for (const Tensor& row : rows) {
      if (row.shape()[d] != rows[0].shape()[d])
        masked = std::max(masked, d + 1);
      sizes[d] = std::max(sizes[d], row.shape()[d]);
    }
  }
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(rows.size()));
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  Padded padded;
  RILL_ASSIGN_OR_RETURN(padded.values, Full(rows[0].dtype(), shape, pad_value));
  RILL_ASSIGN_OR_RETURN(padded.mask,
                        Tensor::Zeros(DType::kBool, shape.Prefix(masked + 1)));
  // Values are filled with the padding first; each row is then copied over its
  // corner, and the mask is true there.
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    RILL_ASSIGN_OR_RETURN(Tensor place, padded.values.Select(dim, number));
    RILL_ASSIGN_OR_RETURN(place, Corner(place, rows[i].shape()));
    RILL_RETURN_IF_ERROR(place.CopyFrom(rows[i]));
    const Shape real = rows[i].shape().Prefix(masked);
    RILL_ASSIGN_OR_RETURN(place, padded.mask.Select(dim, number));
    RILL_ASSIGN_OR_RETURN(place, Corner(place, real));
    RILL_ASSIGN_OR_RETURN(const Tensor yes, Full(DType::kBool, real, 1));
    RILL_RETURN_IF_ERROR(place.CopyFrom(yes));
  }
  return padded;
}

RaggedTensor::RaggedTensor(Tensor values, Tensor shapes,
                           std::shared_ptr<const std::vector<int64_t>> offsets)
    : values_(std::move(values)),
      shapes_(std::move(shapes)),
      offsets_(std::move(offsets)) {}

absl::StatusOr<RaggedTensor> RaggedTensor::Create(const Tensor& values,
                                                  const Tensor& shapes) {
  constexpr absl::string_view kCaller = "RaggedTensor::Create";
  if (shapes.dtype() != DType::kInt64 || shapes.rank() != 2 ||
      !shapes.is_host() || shapes.shape()[1] > Shape::kMaxRank) {
    return InvalidArgument(
        kCaller, ": shapes: got ", DTypeName(shapes.dtype()),
        shapes.shape().ToString(), " on ", shapes.device().ToString(),
        ", want int64[rows, rank] on the host, rank at most ", Shape::kMaxRank);
  }
  if (values.rank() != 1) {
    return InvalidArgument(kCaller, ": values: got shape ",
                           values.shape().ToString(),
                           ", want [elements of all rows]");
  }
  // An own copy: the table decides where rows lie, and nobody may change it.
  RILL_ASSIGN_OR_RETURN(Tensor table, shapes.Clone());
  const int64_t rows = table.shape()[0];
  const auto rank = static_cast<size_t>(table.shape()[1]);
  auto offsets = std::make_shared<std::vector<int64_t>>();
  offsets->push_back(0);
  for (int64_t i = 0; i < rows; ++i) {
    const absl::Span<const int64_t> sizes(
        table.data<int64_t>() + static_cast<size_t>(i) * rank, rank);
    absl::StatusOr<Shape> shape = Shape::Create(sizes);
    int64_t end;
    if (!shape.ok() ||
        __builtin_add_overflow(offsets->back(), shape->num_elements(), &end)) {
      return InvalidArgument(
          kCaller, ": shape of row ", i, ": ",
          shape.ok() ? "the sum of all elements does not fit in int64"
                     : shape.status().message());
    }
    // Checked row by row, so that the message names the first row that is too
    // long.
    if (end > values.num_elements()) {
      return InvalidArgument(kCaller, ": number of values: got ",
                             values.num_elements(), ", want at least ", end,
                             " for rows 0 to ", i);
    }
    offsets->push_back(end);
  }
  if (offsets->back() != values.num_elements()) {
    return InvalidArgument(kCaller, ": number of values: got ",
                           values.num_elements(), ", want ", offsets->back(),
                           ", the elements of all ", rows, " rows");
  }
  // Rows are views of one run of elements.
  RILL_ASSIGN_OR_RETURN(Tensor contiguous, values.Contiguous());
  return RaggedTensor(std::move(contiguous), std::move(table),
                      std::move(offsets));
}

absl::StatusOr<RaggedTensor> RaggedTensor::FromRows(
    absl::Span<const Tensor> rows) {
  constexpr absl::string_view kCaller = "RaggedTensor::FromRows";
  RILL_RETURN_IF_ERROR(CheckAlike(kCaller, rows));
  const int rank = rows[0].rank();
  RILL_ASSIGN_OR_RETURN(
      Tensor shapes,
      Tensor::Empty(DType::kInt64, {static_cast<int64_t>(rows.size()), rank}));
  int64_t* size = shapes.data<int64_t>();
  int64_t total = 0;
  for (const Tensor& row : rows) {
    size = std::copy_n(row.shape().sizes().begin(), rank, size);
    if (__builtin_add_overflow(total, row.num_elements(), &total)) {
      return InvalidArgument(kCaller,
                             ": the sum of all elements does not fit in int64");
    }
  }
  RILL_ASSIGN_OR_RETURN(
      Tensor values,
      Tensor::Empty(rows[0].dtype(), {total}, {.device = rows[0].device()}));
  int64_t at = 0;
  for (const Tensor& row : rows) {
    const int64_t end = at + row.num_elements();
    // Each row into its part of one allocation.
    RILL_ASSIGN_OR_RETURN(Tensor place, values.Slice(0, at, end));
    RILL_ASSIGN_OR_RETURN(place, place.ViewAs(row.shape()));
    RILL_RETURN_IF_ERROR(place.CopyFrom(row));
    at = end;
  }
  return Create(values, shapes);
}

absl::StatusOr<Tensor> RaggedTensor::Row(int64_t index) const {
  if (index < 0 || index >= num_rows()) {
    return OutOfRange("RaggedTensor::Row: index ", index, " is outside [0, ",
                      num_rows(), ")");
  }
  const auto rank = static_cast<size_t>(row_rank());
  const auto row = static_cast<size_t>(index);
  RILL_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create({shapes_.data<int64_t>() + row * rank, rank}));
  RILL_ASSIGN_OR_RETURN(const Tensor flat, values_.Slice(0, (*offsets_)[row],
                                                         (*offsets_)[row + 1]));
  return flat.ViewAs(shape);
}

absl::StatusOr<RaggedTensor> RaggedTensor::Slice(int64_t begin,
                                                 int64_t end) const {
  if (begin < 0 || begin > end || end > num_rows()) {
    return OutOfRange("RaggedTensor::Slice: [", begin, ", ", end,
                      ") is not inside [0, ", num_rows(), ")");
  }
  // A slice is a run of rows and of their elements: views, but for the table.
  RILL_ASSIGN_OR_RETURN(const Tensor shapes, shapes_.Slice(0, begin, end));
  RILL_ASSIGN_OR_RETURN(
      const Tensor values,
      values_.Slice(0, (*offsets_)[static_cast<size_t>(begin)],
                    (*offsets_)[static_cast<size_t>(end)]));
  return Create(values, shapes);
}

absl::StatusOr<RaggedTensor> RaggedTensor::Gather(
    absl::Span<const int64_t> rows) const {
  // FromRows wants at least one row; an empty slice has the right rank.
  if (rows.empty()) {
    RILL_ASSIGN_OR_RETURN(const RaggedTensor none, Slice(0, 0));
    RILL_ASSIGN_OR_RETURN(const Tensor values, none.values_.Clone());
    return none.WithValues(values);
  }
  std::vector<Tensor> chosen;
  chosen.reserve(rows.size());
  for (const int64_t row : rows) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, Row(row));
    chosen.push_back(std::move(tensor));
  }
  return FromRows(chosen);
}

absl::StatusOr<RaggedTensor> RaggedTensor::Cat(
    absl::Span<const RaggedTensor> parts) {
  if (parts.empty()) {
    return InvalidArgument(
        "RaggedTensor::Cat: number of parts: got 0, want at least 1");
  }
  // Values of a part are joined like one row each, so that FromRows does the
  // copies; the shapes are joined likewise.
  std::vector<Tensor> values, shapes;
  for (const RaggedTensor& part : parts) {
    if (part.dtype() != parts[0].dtype() ||
        part.row_rank() != parts[0].row_rank() ||
        part.values_.device() != parts[0].values_.device()) {
      return InvalidArgument(
          "RaggedTensor::Cat: dtype, rank of a row, device: got ",
          part.DebugString(), ", want those of ", parts[0].DebugString());
    }
    RILL_ASSIGN_OR_RETURN(
        Tensor flat, part.shapes_.ViewAs({part.num_rows() * part.row_rank()}));
    values.push_back(part.values_);
    shapes.push_back(std::move(flat));
  }
  RILL_ASSIGN_OR_RETURN(const RaggedTensor all_values, FromRows(values));
  RILL_ASSIGN_OR_RETURN(const RaggedTensor all_shapes, FromRows(shapes));
  int64_t rows = 0;
  for (const RaggedTensor& part : parts) rows += part.num_rows();
  RILL_ASSIGN_OR_RETURN(const Tensor table,
                        all_shapes.values_.ViewAs({rows, parts[0].row_rank()}));
  return Create(all_values.values_, table);
}

absl::StatusOr<RaggedTensor> RaggedTensor::WithValues(
    const Tensor& values) const {
  if (!(values.shape() == values_.shape())) {
    return InvalidArgument("RaggedTensor::WithValues: shape of values: got ",
                           values.shape().ToString(), ", want ",
                           values_.shape().ToString());
  }
  RILL_ASSIGN_OR_RETURN(Tensor contiguous, values.Contiguous());
  // The shapes stay, so the offsets do.
  return RaggedTensor(std::move(contiguous), shapes_, offsets_);
}

absl::StatusOr<Padded> RaggedTensor::ToPadded(double pad_value) const {
  // Without rows there is no largest size.
  if (num_rows() == 0) {
    const std::vector<int64_t> zeros(
        static_cast<size_t>(std::min(row_rank() + 1, Shape::kMaxRank)));
    RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(zeros));
    Padded padded;
    RILL_ASSIGN_OR_RETURN(padded.values, Tensor::Zeros(dtype(), shape));
    RILL_ASSIGN_OR_RETURN(padded.mask, Tensor::Zeros(DType::kBool, {0}));
    return padded;
  }
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(num_rows()));
  for (int64_t i = 0; i < num_rows(); ++i) {
    RILL_ASSIGN_OR_RETURN(Tensor row, Row(i));
    rows.push_back(std::move(row));
  }
  return StackPadded(rows, 0, pad_value);
}

std::string RaggedTensor::DebugString() const {
  constexpr int64_t kMaxRows = 10;
  std::string text =
      absl::StrCat("ragged ", DTypeName(dtype()), " of ", num_rows(), " rows");
  for (int64_t i = 0; i < std::min(num_rows(), kMaxRows); ++i) {
    const absl::StatusOr<Tensor> row = Row(i);
    absl::StrAppend(&text, i == 0 ? " " : ", ",
                    row.ok() ? row->shape().ToString() : "?");
  }
  return absl::StrCat(text, num_rows() > kMaxRows ? ", ..." : "");
}

}  // namespace rill
