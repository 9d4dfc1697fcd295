// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/arrow/read_column.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "arrow/array/data.h"
#include "arrow/array/validate.h"
#include "arrow/buffer.h"
#include "arrow/extension/fixed_shape_tensor.h"
#include "arrow/type.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/distributed/arrow/arrow_columns.h"
#include "rill/tensors/dtype.h"

namespace rill::arrow_internal {
namespace {

using arrow::extension::FixedShapeTensorType;

// The bytes of the elements of an array that has some.
absl::StatusOr<std::shared_ptr<arrow::Buffer>> BufferOf(
    absl::string_view key, const arrow::ArrayData& data) {
  if (data.buffers.size() < 2 || data.buffers[1] == nullptr ||
      !data.buffers[1]->is_cpu()) {
    return Wrong(key, "no buffer in host memory", "one");
  }
  return data.buffers[1];
}

absl::StatusOr<Tensor> CopyBits(absl::string_view key, const Window& window,
                                const Shape& shape) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(DType::kBool, shape));
  if (window.count == 0) return tensor;
  RILL_ASSIGN_OR_RETURN(const auto bytes, BufferOf(key, *window.data));
  auto* const to = tensor.data<uint8_t>();
  const int64_t first = window.data->offset + window.start;
  for (int64_t i = 0; i < window.count; ++i) {
    to[i] = bytes->data()[(first + i) / 8] >> ((first + i) % 8) & 1;
  }
  return tensor;
}

// A view where the address allows it, else a copy.
absl::StatusOr<Tensor> ViewBytes(absl::string_view key, const Window& window,
                                 DType dtype, const Shape& shape,
                                 bool is_writable) {
  if (window.count == 0) return Tensor::Empty(dtype, shape);
  RILL_ASSIGN_OR_RETURN(const auto owner, BufferOf(key, *window.data));
  const int64_t width = DTypeSize(ElementsOf(dtype).storage);
  const int64_t first = (window.data->offset + window.start) * width;
  auto* const bytes = const_cast<uint8_t*>(owner->data());
  if (reinterpret_cast<uintptr_t>(bytes + first) % width == 0) {
    return Tensor::View(
        Buffer::Wrap(bytes, owner->size(), Device::Cpu(), MemoryKind::kPageable,
                     owner, is_writable || owner->is_mutable()),
        dtype, shape, first);
  }
  RILL_ASSIGN_OR_RETURN(Tensor copy, Tensor::Empty(dtype, shape));
  std::memcpy(copy.raw_data(), bytes + first,
              static_cast<size_t>(copy.size_bytes()));
  return copy;
}

bool AreBools(const Tensor& bytes) {
  uint8_t any = 0;
  for (int64_t i = 0; i < bytes.num_elements(); ++i) {
    any |= bytes.data<uint8_t>()[i];
  }
  return any <= 1;
}

// The elements of a window as a tensor of `sizes`; the last of them is the
// parts of a complex number where the metadata says so.
absl::StatusOr<Tensor> ReadElements(absl::string_view key, const Window& window,
                                    const arrow::KeyValueMetadata* metadata,
                                    std::vector<int64_t> sizes,
                                    bool is_writable) {
  const arrow::DataType& type = *window.data->type;
  const bool is_bits = type.id() == arrow::Type::BOOL;
  const std::optional<DType> storage =
      is_bits ? std::optional<DType>(DType::kBool) : StorageOf(type);
  if (!storage.has_value()) {
    return Wrong(key, type.ToString(), "numbers, bool, string, list or struct");
  }
  DType dtype = *storage;
  int64_t parts = 1;
  if (const auto name = FindMetadata(metadata, kDTypeName);
      name.has_value() && *name != DTypeName(dtype)) {
    const absl::StatusOr<DType> named = DTypeFromName(*name);
    if (!named.ok()) return WithKey(key, named.status());
    dtype = *named;
    const Elements elements = ElementsOf(dtype);
    parts = elements.parts;
    if (elements.storage != *storage ||
        (parts > 1 && (sizes.empty() || sizes.back() != parts))) {
      return Wrong(key, absl::StrCat(type.ToString(), " for ", *name),
                   "the form that docs/formats/arrow.md says");
    }
    if (parts > 1) sizes.pop_back();
  }
  const absl::StatusOr<Shape> shape = Shape::Create(sizes);
  if (!shape.ok()) return WithKey(key, shape.status());
  // Before anything of this size is made or read.
  if (shape->num_elements() != window.count / parts) {
    return Wrong(key, absl::StrCat(window.count, " elements"),
                 absl::StrCat("as many as ", shape->ToString(), " has"));
  }
  if (is_bits) return CopyBits(key, window, *shape);
  RILL_ASSIGN_OR_RETURN(Tensor tensor,
                        ViewBytes(key, window, dtype, *shape, is_writable));
  if (dtype == DType::kBool && !AreBools(tensor)) {
    return Wrong(key, "bytes above 1 for bool", "0 and 1");
  }
  return tensor;
}

// Offset `row` of a window of lists or texts. They lie at any address.
template <typename Offset>
int64_t OffsetOf(const arrow::Buffer& bytes, const Window& rows, int64_t row) {
  Offset offset;
  std::memcpy(&offset,
              bytes.data() + (rows.data->offset + rows.start + row) *
                                 static_cast<int64_t>(sizeof(Offset)),
              sizeof(Offset));
  return int64_t{offset};
}

struct Lists {
  Tensor lengths;  // int64 [rows, 1].
  Window values;
};

template <typename Offset>
absl::StatusOr<Lists> ReadLists(absl::string_view key, const Window& rows) {
  Lists lists;
  RILL_ASSIGN_OR_RETURN(lists.lengths,
                        Tensor::Empty(DType::kInt64, {rows.count, 1}));
  RILL_ASSIGN_OR_RETURN(lists.values,
                        InsideOf(key, {rows.data, 0, 0}, 0, /*each=*/1));
  lists.values.start = 0;
  if (rows.count == 0) return lists;
  RILL_ASSIGN_OR_RETURN(const auto bytes, BufferOf(key, *rows.data));
  const int64_t begin = OffsetOf<Offset>(*bytes, rows, 0);
  int64_t end = begin;
  for (int64_t row = 0; row < rows.count; ++row) {
    const int64_t next = OffsetOf<Offset>(*bytes, rows, row + 1);
    if (begin < 0 || next < end || next > lists.values.data->length) {
      return Wrong(
          key, absl::StrCat("offsets ", end, " and ", next),
          absl::StrCat("rising ones in [0, ", lists.values.data->length, "]"));
    }
    lists.lengths.data<int64_t>()[row] = next - end;
    end = next;
  }
  lists.values.start = begin;
  lists.values.count = end - begin;
  return lists;
}

// For strings that have passed ValidateArrayFull.
template <typename Offset>
absl::StatusOr<std::vector<std::string>> TextsOf(absl::string_view key,
                                                 const Window& rows) {
  std::vector<std::string> texts;
  if (rows.count == 0) return texts;
  RILL_ASSIGN_OR_RETURN(const auto offsets, BufferOf(key, *rows.data));
  const arrow::Buffer* const bytes = rows.data->buffers[2].get();
  for (int64_t row = 0; row < rows.count; ++row) {
    const int64_t begin = OffsetOf<Offset>(*offsets, rows, row);
    const int64_t size = OffsetOf<Offset>(*offsets, rows, row + 1) - begin;
    if (size == 0) {
      texts.emplace_back();
    } else {
      texts.emplace_back(reinterpret_cast<const char*>(bytes->data()) + begin,
                         static_cast<size_t>(size));
    }
  }
  return texts;
}

}  // namespace

absl::Status Wrong(absl::string_view key, absl::string_view got,
                   absl::string_view want) {
  return InvalidArgument("FromArrow: \"", key, "\": got ", got, ", want ",
                         want);
}

absl::Status WithKey(absl::string_view key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("FromArrow: \"", key,
                                                  "\": ", status.message()));
}

absl::StatusOr<Window> InsideOf(absl::string_view key, const Window& window,
                                size_t child, int64_t each) {
  Window inside;
  if (child < window.data->child_data.size()) {
    inside.data = window.data->child_data[child].get();
  }
  if (inside.data == nullptr ||
      __builtin_mul_overflow(window.data->offset + window.start, each,
                             &inside.start) ||
      __builtin_mul_overflow(window.count, each, &inside.count) ||
      (inside.count > 0 && inside.start > inside.data->length - inside.count)) {
    return Wrong(key, "children that are missing or too short", "all of them");
  }
  if (inside.data->GetNullCount() != 0) {
    return Wrong(key, "null values", "none");
  }
  return inside;
}

absl::StatusOr<Tensor> ReadLeaf(absl::string_view key, const Window& rows,
                                const arrow::KeyValueMetadata* metadata,
                                const Shape& batch_shape, bool is_writable) {
  const arrow::DataType* type = rows.data->type.get();
  const FixedShapeTensorType* tensor = nullptr;
  if (type->id() == arrow::Type::EXTENSION) {
    tensor = dynamic_cast<const FixedShapeTensorType*>(type);
    if (tensor == nullptr || !std::is_sorted(tensor->permutation().begin(),
                                             tensor->permutation().end())) {
      return Wrong(key, type->ToString(),
                   "no extension but row-major arrow.fixed_shape_tensor");
    }
    type = tensor->storage_type().get();
  }
  Window window = rows;
  std::vector<int64_t> inner;
  int64_t each = 1;
  while (type->id() == arrow::Type::FIXED_SIZE_LIST &&
         inner.size() <= Shape::kMaxRank) {
    inner.push_back(
        static_cast<const arrow::FixedSizeListType*>(type)->list_size());
    if (inner.back() < 0 || __builtin_mul_overflow(each, inner.back(), &each)) {
      return Wrong(key, type->ToString(), "a size that fits in int64");
    }
    RILL_ASSIGN_OR_RETURN(window, InsideOf(key, window, 0, inner.back()));
    type = window.data->type.get();
  }
  if (tensor != nullptr) {
    const absl::StatusOr<Shape> shape = Shape::Create(tensor->shape());
    if (!shape.ok()) return WithKey(key, shape.status());
    if (shape->num_elements() != each) {
      return Wrong(key, absl::StrCat("lists of ", each),
                   absl::StrCat("as many as ", shape->ToString(), " has"));
    }
    inner = tensor->shape();
  }
  std::vector<int64_t> sizes(batch_shape.sizes().begin(),
                             batch_shape.sizes().end());
  sizes.insert(sizes.end(), inner.begin(), inner.end());
  return ReadElements(key, window, metadata, std::move(sizes), is_writable);
}

absl::StatusOr<RaggedTensor> ReadRagged(absl::string_view key,
                                        const Window& rows,
                                        const arrow::KeyValueMetadata* metadata,
                                        bool is_writable) {
  Window column = rows;
  Window table;
  const bool has_shapes = column.data->type->id() == arrow::Type::STRUCT;
  if (has_shapes) {
    RILL_ASSIGN_OR_RETURN(table, InsideOf(key, rows, 1, /*each=*/1));
    RILL_ASSIGN_OR_RETURN(column, InsideOf(key, rows, 0, /*each=*/1));
  }
  absl::StatusOr<Lists> lists;
  switch (column.data->type->id()) {
    case arrow::Type::LIST:
      lists = ReadLists<int32_t>(key, column);
      break;
    case arrow::Type::LARGE_LIST:
      lists = ReadLists<int64_t>(key, column);
      break;
    default:
      return Wrong(key, column.data->type->ToString(), "lists of numbers");
  }
  if (!lists.ok()) return lists.status();
  Tensor shapes = lists->lengths;
  if (has_shapes) {
    RILL_ASSIGN_OR_RETURN(shapes, ReadLeaf(key, table, nullptr, {rows.count},
                                           /*is_writable=*/false));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor values,
                        ReadElements(key, lists->values, metadata,
                                     {lists->values.count}, is_writable));
  absl::StatusOr<RaggedTensor> ragged = RaggedTensor::Create(values, shapes);
  if (!ragged.ok()) return WithKey(key, ragged.status());
  return ragged;
}

absl::StatusOr<std::vector<std::string>> ReadTexts(absl::string_view key,
                                                   const Window& rows) {
  const absl::Status status =
      StatusOf("column", arrow::internal::ValidateArrayFull(*rows.data));
  if (!status.ok()) return WithKey(key, status);
  if (rows.data->type->id() == arrow::Type::STRING) {
    return TextsOf<int32_t>(key, rows);
  }
  return TextsOf<int64_t>(key, rows);
}

}  // namespace rill::arrow_internal
