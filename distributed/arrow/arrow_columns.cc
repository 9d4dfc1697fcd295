// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/arrow/arrow_columns.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "arrow/status.h"
#include "arrow/type.h"
#include "arrow/util/key_value_metadata.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"

namespace rill::arrow_internal {
namespace {

using Json = nlohmann::json;

}  // namespace

std::optional<std::string> FindMetadata(const arrow::KeyValueMetadata* metadata,
                                        const char* name) {
  const int at = metadata == nullptr ? -1 : metadata->FindKey(name);
  if (at < 0) return std::nullopt;
  return metadata->value(at);
}

std::string ShapeText(const Shape& shape) {
  return Json(std::vector<int64_t>(shape.sizes().begin(), shape.sizes().end()))
      .dump();
}

std::string DimNamesText(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', /*ensure_ascii=*/false,
                          Json::error_handler_t::replace);
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<int64_t> sizes;
  bool is_shape = json.is_array() && json.size() <= Shape::kMaxRank;
  for (size_t i = 0; is_shape && i < json.size(); ++i) {
    is_shape = json[i].is_number_unsigned() &&
               json[i].get<uint64_t>() <= uint64_t{INT64_MAX};
    if (is_shape) sizes.push_back(json[i].get<int64_t>());
  }
  if (is_shape) return Shape::Create(sizes);
  return InvalidArgument("shape: got ", text.substr(0, 80),
                         ", want a list of at most ", Shape::kMaxRank,
                         " sizes");
}

absl::StatusOr<std::vector<std::string>> ParseDimNames(absl::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  bool is_list = json.is_array() && json.size() <= Shape::kMaxRank;
  for (size_t i = 0; is_list && i < json.size(); ++i) {
    is_list = json[i].is_string();
    if (is_list) names.push_back(json[i].get<std::string>());
  }
  if (is_list) return names;
  return InvalidArgument("dimension names: got ", text.substr(0, 80),
                         ", want a list of at most ", Shape::kMaxRank,
                         " strings");
}

Elements ElementsOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {arrow::uint8(), DType::kUInt8};
    case DType::kBFloat16:
      return {arrow::uint16(), DType::kUInt16};
    case DType::kComplex64:
      return {arrow::float32(), DType::kFloat32, 2};
    case DType::kComplex128:
      return {arrow::float64(), DType::kFloat64, 2};
    case DType::kUInt8:
      return {arrow::uint8(), dtype};
    case DType::kInt8:
      return {arrow::int8(), dtype};
    case DType::kInt16:
      return {arrow::int16(), dtype};
    case DType::kInt32:
      return {arrow::int32(), dtype};
    case DType::kInt64:
      return {arrow::int64(), dtype};
    case DType::kFloat16:
      return {arrow::float16(), dtype};
    case DType::kFloat32:
      return {arrow::float32(), dtype};
    case DType::kFloat64:
      return {arrow::float64(), dtype};
    case DType::kUInt16:
      return {arrow::uint16(), dtype};
    case DType::kUInt32:
      return {arrow::uint32(), dtype};
    case DType::kUInt64:
      return {arrow::uint64(), dtype};
  }
  return {arrow::uint8(), DType::kUInt8};
}

std::optional<DType> StorageOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::UINT8:
      return DType::kUInt8;
    case arrow::Type::INT8:
      return DType::kInt8;
    case arrow::Type::INT16:
      return DType::kInt16;
    case arrow::Type::INT32:
      return DType::kInt32;
    case arrow::Type::INT64:
      return DType::kInt64;
    case arrow::Type::HALF_FLOAT:
      return DType::kFloat16;
    case arrow::Type::FLOAT:
      return DType::kFloat32;
    case arrow::Type::DOUBLE:
      return DType::kFloat64;
    case arrow::Type::UINT16:
      return DType::kUInt16;
    case arrow::Type::UINT32:
      return DType::kUInt32;
    case arrow::Type::UINT64:
      return DType::kUInt64;
    default:
      return std::nullopt;
  }
}

absl::Status StatusOf(absl::string_view where, const arrow::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string text = absl::StrCat(where, ": ", status.message());
  if (status.IsOutOfMemory()) {
    return absl::ResourceExhaustedError(std::move(text));
  }
  return absl::InvalidArgumentError(std::move(text));
}

}  // namespace rill::arrow_internal
