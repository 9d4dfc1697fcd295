// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "arrow/array/array_base.h"
#include "arrow/array/builder_binary.h"
#include "arrow/array/data.h"
#include "arrow/buffer.h"
#include "arrow/extension/fixed_shape_tensor.h"
#include "arrow/record_batch.h"
#include "arrow/type.h"
#include "arrow/util/key_value_metadata.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/arrow/arrow_columns.h"
#include "rill/formats/json/utf8.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using arrow_internal::Elements;
using arrow_internal::ElementsOf;

using Metadata = std::vector<std::pair<std::string, std::string>>;

// A column before it has a name; `metadata` is the field's.
struct Column {
  std::shared_ptr<arrow::ArrayData> data;
  Metadata metadata = {};
};

// A level's columns, in order.
struct Columns {
  arrow::FieldVector fields;
  std::vector<std::shared_ptr<arrow::ArrayData>> data;
};

// The bytes of a contiguous tensor, which it keeps.
class TensorBytes final : public arrow::Buffer {
 public:
  explicit TensorBytes(Tensor tensor)
      : Buffer(tensor.size_bytes() == 0
                   ? kNone
                   : reinterpret_cast<const uint8_t*>(tensor.raw_data()),
               tensor.size_bytes()),
        tensor_(std::move(tensor)) {}

 private:
  alignas(64) static constexpr uint8_t kNone[64] = {};

  const Tensor tensor_;
};

absl::Status Wrong(absl::string_view key, absl::string_view got,
                   absl::string_view want) {
  return InvalidArgument("ToArrow: \"", key, "\": got ", got, ", want ", want);
}

absl::Status WithKey(absl::string_view key, const arrow::Status& status) {
  return arrow_internal::StatusOf(absl::StrCat("ToArrow: \"", key, "\""),
                                  status);
}

absl::Status CheckUtf8(absl::string_view key, absl::string_view text) {
  if (formats_internal::IsUtf8(text)) return absl::OkStatus();
  return Wrong(key, "text that is no UTF-8", "UTF-8");
}

std::shared_ptr<arrow::KeyValueMetadata> MetadataOf(const Metadata& pairs) {
  if (pairs.empty()) return nullptr;
  auto metadata = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [name, value] : pairs) metadata->Append(name, value);
  return metadata;
}

// All elements of a host tensor, one behind the other.
absl::StatusOr<std::shared_ptr<arrow::ArrayData>> ElementsArray(
    absl::string_view key, const Tensor& tensor, const Elements& elements) {
  if (!tensor.is_host()) {
    return Wrong(key, absl::StrCat("a tensor on ", tensor.device().ToString()),
                 "one in host memory; use To(Device::Cpu())");
  }
  RILL_ASSIGN_OR_RETURN(Tensor contiguous, tensor.Contiguous());
  const int64_t count = contiguous.num_elements() * elements.parts;
  return arrow::ArrayData::Make(
      elements.type, count,
      {nullptr, std::make_shared<TensorBytes>(std::move(contiguous))},
      /*null_count=*/0);
}

// Bools as bits, the lowest first.
absl::StatusOr<std::shared_ptr<arrow::ArrayData>> BitsArray(
    absl::string_view key, const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const auto bytes,
                        ElementsArray(key, tensor, ElementsOf(tensor.dtype())));
  const int64_t count = tensor.num_elements();
  RILL_ASSIGN_OR_RETURN(Tensor bits,
                        Tensor::Zeros(DType::kUInt8, {(count + 7) / 8}));
  const uint8_t* const from = bytes->buffers[1]->data();
  auto* const to = bits.data<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    to[i / 8] |= static_cast<uint8_t>((from[i] != 0 ? 1 : 0) << (i % 8));
  }
  return arrow::ArrayData::Make(
      arrow::boolean(), count,
      {nullptr, std::make_shared<TensorBytes>(std::move(bits))},
      /*null_count=*/0);
}

// Rows of `parts` elements for each of an `inner` shape.
absl::StatusOr<std::shared_ptr<arrow::ArrayData>> RowsArray(
    absl::string_view key, int64_t rows, const Shape& inner, int parts,
    std::shared_ptr<arrow::ArrayData> elements) {
  if (inner.num_elements() > std::numeric_limits<int32_t>::max() / parts) {
    return Wrong(key, absl::StrCat("rows of shape ", inner.ToString()),
                 "at most 2147483647 elements a row");
  }
  std::vector<int64_t> sizes(inner.sizes().begin(), inner.sizes().end());
  if (parts > 1) sizes.push_back(parts);
  auto type =
      arrow::extension::FixedShapeTensorType::Make(elements->type, sizes);
  if (!type.ok()) return WithKey(key, type.status());
  return arrow::ArrayData::Make(*std::move(type), rows, {nullptr},
                                {std::move(elements)}, /*null_count=*/0);
}

absl::StatusOr<Column> LeafColumn(absl::string_view key, const Tensor& leaf,
                                  int batch_rank, int64_t rows) {
  const Shape inner = leaf.shape().Suffix(batch_rank);
  if (leaf.dtype() == DType::kBool && inner.rank() == 0) {
    RILL_ASSIGN_OR_RETURN(auto bits, BitsArray(key, leaf));
    return Column{std::move(bits)};
  }
  const Elements elements = ElementsOf(leaf.dtype());
  Column column;
  if (elements.storage != leaf.dtype()) {
    column.metadata.emplace_back(arrow_internal::kDTypeName,
                                 DTypeName(leaf.dtype()));
  }
  RILL_ASSIGN_OR_RETURN(column.data, ElementsArray(key, leaf, elements));
  if (inner.rank() == 0 && elements.parts == 1) return column;
  RILL_ASSIGN_OR_RETURN(column.data, RowsArray(key, rows, inner, elements.parts,
                                               std::move(column.data)));
  return column;
}

absl::StatusOr<Column> TextColumn(absl::string_view key, const char* kind,
                                  const std::vector<std::string>& texts) {
  arrow::StringBuilder builder;
  for (const std::string& text : texts) {
    RILL_RETURN_IF_ERROR(CheckUtf8(key, text));
    RILL_RETURN_IF_ERROR(WithKey(key, builder.Append(text)));
  }
  std::shared_ptr<arrow::Array> array;
  RILL_RETURN_IF_ERROR(WithKey(key, builder.Finish(&array)));
  return Column{array->data(), {{arrow_internal::kKindName, kind}}};
}

// A list a row; where rows have not just one dimension, with their shapes.
absl::StatusOr<Column> RaggedColumn(absl::string_view key,
                                    const RaggedTensor& ragged) {
  const Elements elements = ElementsOf(ragged.dtype());
  if (elements.parts > 1) {
    return Wrong(key,
                 absl::StrCat("a ragged tensor of ", DTypeName(ragged.dtype())),
                 "a dtype that is not complex");
  }
  Column column;
  if (elements.storage != ragged.dtype()) {
    column.metadata.emplace_back(arrow_internal::kDTypeName,
                                 DTypeName(ragged.dtype()));
  }
  const int64_t rows = ragged.num_rows();
  RILL_ASSIGN_OR_RETURN(auto values,
                        ElementsArray(key, ragged.values(), elements));
  RILL_ASSIGN_OR_RETURN(Tensor offsets,
                        Tensor::Zeros(DType::kInt64, {rows + 1}));
  for (int64_t row = 0; row < rows; ++row) {
    RILL_ASSIGN_OR_RETURN(const Tensor view, ragged.Row(row));
    offsets.data<int64_t>()[row + 1] =
        offsets.data<int64_t>()[row] + view.num_elements();
  }
  const auto list_type = arrow::large_list(values->type);
  column.data = arrow::ArrayData::Make(
      list_type, rows,
      {nullptr, std::make_shared<TensorBytes>(std::move(offsets))},
      {std::move(values)}, /*null_count=*/0);
  if (ragged.row_rank() == 1) return column;
  RILL_ASSIGN_OR_RETURN(auto sizes, ElementsArray(key, ragged.shapes(),
                                                  ElementsOf(DType::kInt64)));
  auto shapes = arrow::ArrayData::Make(
      arrow::fixed_size_list(arrow::int64(), ragged.row_rank()), rows,
      {nullptr}, {std::move(sizes)}, /*null_count=*/0);
  const auto type =
      arrow::struct_({arrow::field("data", list_type, false),
                      arrow::field("shape", shapes->type, false)});
  column.data = arrow::ArrayData::Make(
      type, rows, {nullptr}, {std::move(column.data), std::move(shapes)},
      /*null_count=*/0);
  column.metadata.emplace_back(arrow_internal::kKindName,
                               arrow_internal::kRaggedKind);
  return column;
}

absl::Status AddDimNames(const TensorDict& dict, absl::string_view key,
                         Metadata* metadata) {
  if (dict.dim_names().empty()) return absl::OkStatus();
  for (const std::string& name : dict.dim_names()) {
    RILL_RETURN_IF_ERROR(CheckUtf8(key, name));
  }
  metadata->emplace_back(arrow_internal::kDimNamesName,
                         arrow_internal::DimNamesText(dict.dim_names()));
  return absl::OkStatus();
}

class Exporter {
 public:
  explicit Exporter(const TensorDict& root)
      : rank_(root.batch_shape().rank()),
        rows_(root.batch_shape().num_elements()) {}

  int64_t rows() const { return rows_; }

  absl::StatusOr<Columns> LevelColumns(const TensorDict& level,
                                       const std::string& prefix) const {
    Columns columns;
    absl::Status status;
    level.ForEachEntry([&](absl::string_view key, EntryKind kind) {
      if (!status.ok()) return;
      const std::string path = absl::StrCat(prefix, key);
      absl::StatusOr<Column> column = EntryColumn(level, key, kind, path);
      absl::StatusOr<std::vector<std::string>> name = SplitKey(key);
      status = !column.ok() ? column.status()
               : !name.ok() ? name.status()
                            : CheckUtf8(path, name->front());
      if (!status.ok()) return;
      columns.fields.push_back(arrow::field(name->front(), column->data->type,
                                            /*nullable=*/false,
                                            MetadataOf(column->metadata)));
      columns.data.push_back(std::move(column->data));
    });
    if (!status.ok()) return status;
    return columns;
  }

 private:
  absl::StatusOr<Column> EntryColumn(const TensorDict& level,
                                     absl::string_view key, EntryKind kind,
                                     const std::string& path) const {
    switch (kind) {
      case EntryKind::kTensor:
        return LeafColumn(path, *level.Find(key), rank_, rows_);
      case EntryKind::kDict:
        return DictColumn(*level.FindDict(key), path);
      case EntryKind::kNonTensor: {
        RILL_ASSIGN_OR_RETURN(const NonTensor value, level.GetNonTensor(key));
        return TextColumn(
            path, arrow_internal::kNonTensorKind,
            std::vector<std::string>(static_cast<size_t>(rows_), value.json));
      }
      case EntryKind::kNonTensorStack: {
        RILL_ASSIGN_OR_RETURN(const NonTensorStack values,
                              level.GetNonTensorStack(key));
        if (values.shape().rank() != rank_) break;
        return TextColumn(path, arrow_internal::kNonTensorStackKind,
                          values.values());
      }
      case EntryKind::kRagged: {
        RILL_ASSIGN_OR_RETURN(const RaggedTensor ragged, level.GetRagged(key));
        if (level.batch_shape().rank() != rank_) break;
        return RaggedColumn(path, ragged);
      }
      case EntryKind::kLazyStack:
        return Wrong(path, "a lazy stack",
                     "tensors; use LazyStack::ToDense or ToPadded");
    }
    return Wrong(
        path,
        absl::StrCat("values of batch shape ", level.batch_shape().ToString()),
        absl::StrCat("the outermost batch shape, of ", rank_,
                     " dimensions, for what is no tensor"));
  }

  absl::StatusOr<Column> DictColumn(const TensorDict& dict,
                                    const std::string& path) const {
    RILL_ASSIGN_OR_RETURN(Columns inner,
                          LevelColumns(dict, absl::StrCat(path, "/")));
    Column column{arrow::ArrayData::Make(arrow::struct_(inner.fields), rows_,
                                         {nullptr}, std::move(inner.data),
                                         /*null_count=*/0)};
    const Shape tail = dict.batch_shape().Suffix(rank_);
    if (tail.rank() > 0) {
      column.metadata.emplace_back(arrow_internal::kBatchShapeName,
                                   arrow_internal::ShapeText(tail));
    }
    RILL_RETURN_IF_ERROR(AddDimNames(dict, path, &column.metadata));
    return column;
  }

  const int rank_;  // Of the outermost batch shape.
  const int64_t rows_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<arrow::RecordBatch>> ToArrow(
    const TensorDict& dict, const ToArrowOptions& options) {
  const Exporter exporter(dict);
  RILL_ASSIGN_OR_RETURN(Columns columns, exporter.LevelColumns(dict, ""));
  Metadata metadata;
  if (options.writes_batch_shape) {
    metadata.emplace_back(arrow_internal::kBatchShapeName,
                          arrow_internal::ShapeText(dict.batch_shape()));
    RILL_RETURN_IF_ERROR(AddDimNames(dict, "", &metadata));
  }
  return arrow::RecordBatch::Make(
      arrow::schema(std::move(columns.fields), MetadataOf(metadata)),
      exporter.rows(), std::move(columns.data));
}

}  // namespace rill
