// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "arrow/array/data.h"
#include "arrow/array/validate.h"
#include "arrow/record_batch.h"
#include "arrow/type.h"
#include "arrow/util/key_value_metadata.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/arrow/arrow_columns.h"
#include "rill/distributed/arrow/read_column.h"
#include "rill/formats/json/utf8.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using arrow_internal::FindMetadata;
using arrow_internal::InsideOf;
using arrow_internal::Window;
using arrow_internal::WithKey;
using arrow_internal::Wrong;

constexpr int kMaxDepth = 64;  // Of dictionaries in one another.

// An entry to be made of a column.
struct Column {
  const arrow::Field* field;
  std::string key;   // Of its level.
  std::string path;  // From the outermost level, for messages.
  Window rows;
};

absl::Status SetDimNames(absl::string_view path, absl::string_view text,
                         TensorDict* dict) {
  absl::StatusOr<std::vector<std::string>> names =
      arrow_internal::ParseDimNames(text);
  if (!names.ok()) return WithKey(path, names.status());
  const absl::Status status = dict->SetDimNames(*std::move(names));
  return status.ok() ? status : WithKey(path, status);
}

// An empty dictionary of the batch shape around it, and what metadata adds.
absl::StatusOr<TensorDict> MakeDict(const Column& column,
                                    const Shape& batch_shape) {
  const arrow::KeyValueMetadata* metadata = column.field->metadata().get();
  std::vector<int64_t> sizes(batch_shape.sizes().begin(),
                             batch_shape.sizes().end());
  if (const auto text =
          FindMetadata(metadata, arrow_internal::kBatchShapeName)) {
    const absl::StatusOr<Shape> tail = arrow_internal::ParseShape(*text);
    if (!tail.ok()) return WithKey(column.path, tail.status());
    sizes.insert(sizes.end(), tail->sizes().begin(), tail->sizes().end());
  }
  const absl::StatusOr<Shape> joined = Shape::Create(sizes);
  if (!joined.ok()) return WithKey(column.path, joined.status());
  TensorDict dict(*joined);
  if (const auto text = FindMetadata(metadata, arrow_internal::kDimNamesName)) {
    RILL_RETURN_IF_ERROR(SetDimNames(column.path, *text, &dict));
  }
  return dict;
}

class Importer {
 public:
  // `batch_shape` is the outermost one.
  Importer(const Shape& batch_shape, bool is_writable)
      : batch_shape_(batch_shape), is_writable_(is_writable) {}

  absl::Status AddColumns(const arrow::FieldVector& fields,
                          const std::vector<Window>& windows,
                          absl::string_view prefix, int depth,
                          TensorDict* level) const {
    for (size_t i = 0; i < fields.size(); ++i) {
      Column column = {fields[i].get(), EscapeKeyComponent(fields[i]->name()),
                       "", windows[i]};
      column.path = absl::StrCat(prefix, column.key);
      if (column.key.empty()) {
        return Wrong(column.path, absl::StrCat("no name of column ", i),
                     "one of at least a character");
      }
      if (!formats_internal::IsUtf8(fields[i]->name())) {
        return Wrong(column.path, "a name that is no UTF-8", "UTF-8");
      }
      if (level->Contains(column.key)) {
        return Wrong(column.path, "two columns of this name", "one");
      }
      RILL_RETURN_IF_ERROR(AddColumn(column, depth, level));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddColumn(const Column& column, int depth,
                         TensorDict* level) const {
    const arrow::KeyValueMetadata* metadata = column.field->metadata().get();
    const std::optional<std::string> kind =
        FindMetadata(metadata, arrow_internal::kKindName);
    switch (column.rows.data->type->id()) {
      case arrow::Type::STRING:
      case arrow::Type::LARGE_STRING:
        return AddTexts(column, kind.value_or(""), level);
      case arrow::Type::STRUCT:
        if (kind != arrow_internal::kRaggedKind) {
          return AddDict(column, depth, level);
        }
        [[fallthrough]];
      case arrow::Type::LIST:
      case arrow::Type::LARGE_LIST: {
        RILL_ASSIGN_OR_RETURN(RaggedTensor ragged, arrow_internal::ReadRagged(
                                                       column.path, column.rows,
                                                       metadata, is_writable_));
        return SetEntry(column, std::move(ragged), level);
      }
      default: {
        RILL_ASSIGN_OR_RETURN(
            Tensor leaf,
            arrow_internal::ReadLeaf(column.path, column.rows, metadata,
                                     batch_shape_, is_writable_));
        return SetEntry(column, std::move(leaf), level);
      }
    }
  }

  template <typename T>
  static absl::Status SetEntry(const Column& column, T value,
                               TensorDict* level) {
    const absl::Status status = level->Set(column.key, std::move(value));
    return status.ok() ? status : WithKey(column.path, status);
  }

  absl::Status AddDict(const Column& column, int depth,
                       TensorDict* level) const {
    if (depth == kMaxDepth) {
      return Wrong(column.path, "more structs in one another",
                   absl::StrCat("at most ", kMaxDepth));
    }
    RILL_ASSIGN_OR_RETURN(TensorDict dict,
                          MakeDict(column, level->batch_shape()));
    const arrow::FieldVector& fields = column.rows.data->type->fields();
    std::vector<Window> windows;
    for (size_t i = 0; i < fields.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Window window,
                            InsideOf(column.path, column.rows, i, /*each=*/1));
      windows.push_back(window);
    }
    RILL_RETURN_IF_ERROR(AddColumns(
        fields, windows, absl::StrCat(column.path, "/"), depth + 1, &dict));
    return SetEntry(column, std::move(dict), level);
  }

  absl::Status AddTexts(const Column& column, absl::string_view kind,
                        TensorDict* level) const {
    RILL_ASSIGN_OR_RETURN(std::vector<std::string> texts,
                          arrow_internal::ReadTexts(column.path, column.rows));
    if (kind == arrow_internal::kNonTensorKind) {
      for (const std::string& text : texts) {
        if (text == texts.front()) continue;
        return Wrong(column.path, absl::StrCat(texts.front(), " and ", text),
                     "one value for all rows");
      }
      return SetEntry(column, NonTensor{texts.empty() ? "null" : texts.front()},
                      level);
    }
    if (kind != arrow_internal::kNonTensorStackKind) {
      for (std::string& text : texts) text = nlohmann::json(text).dump();
    }
    absl::StatusOr<NonTensorStack> stack =
        NonTensorStack::Create(level->batch_shape(), texts);
    if (!stack.ok()) return WithKey(column.path, stack.status());
    return SetEntry(column, *std::move(stack), level);
  }

  const Shape batch_shape_;
  const bool is_writable_;
};

}  // namespace

absl::StatusOr<TensorDict> FromArrow(
    const std::shared_ptr<arrow::RecordBatch>& batch,
    const FromArrowOptions& options) {
  if (batch == nullptr) return InvalidArgument("FromArrow: batch is null");
  const arrow::KeyValueMetadata* metadata = batch->schema()->metadata().get();
  const int64_t rows = batch->num_rows();
  Shape batch_shape = {rows};
  std::optional<std::string> dim_names;
  if (options.batch_shape.has_value()) {
    batch_shape = *options.batch_shape;
  } else if (const auto text =
                 FindMetadata(metadata, arrow_internal::kBatchShapeName)) {
    const absl::StatusOr<Shape> shape = arrow_internal::ParseShape(*text);
    if (!shape.ok()) return WithKey("", shape.status());
    batch_shape = *shape;
    dim_names = FindMetadata(metadata, arrow_internal::kDimNamesName);
  }
  if (batch_shape.num_elements() != rows) {
    return InvalidArgument("FromArrow: batch shape: got ",
                           batch_shape.ToString(), ", want one of ", rows,
                           " rows, as the batch has");
  }
  TensorDict dict(batch_shape);
  if (dim_names.has_value()) {
    RILL_RETURN_IF_ERROR(SetDimNames("", *dim_names, &dict));
  }
  const arrow::FieldVector& fields = batch->schema()->fields();
  std::vector<std::shared_ptr<arrow::ArrayData>> columns;
  std::vector<Window> windows;
  for (size_t i = 0; i < fields.size(); ++i) {
    columns.push_back(batch->column_data(static_cast<int>(i)));
    const arrow::ArrayData& data = *columns.back();
    const std::string key = EscapeKeyComponent(fields[i]->name());
    const absl::Status status = arrow_internal::StatusOf(
        "column", arrow::internal::ValidateArray(data));
    if (!status.ok()) return WithKey(key, status);
    if (data.length != rows) {
      return Wrong(key, absl::StrCat(data.length, " rows"), absl::StrCat(rows));
    }
    if (data.GetNullCount() != 0) return Wrong(key, "null values", "none");
    windows.push_back({&data, 0, rows});
  }
  RILL_RETURN_IF_ERROR(Importer(batch_shape, options.is_writable)
                           .AddColumns(fields, windows, "", 0, &dict));
  return dict;
}

}  // namespace rill
