// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_ARROW_ARROW_COLUMNS_H_
#define RILL_DISTRIBUTED_ARROW_ARROW_COLUMNS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace arrow {
class DataType;
class KeyValueMetadata;
class Status;
}  // namespace arrow

// Shared by both directions: how dtypes lie in columns, and the metadata.
// Thread-safety: thread-safe.
namespace rill::arrow_internal {

// --- Metadata: names, and values that are JSON but for the first two ---------
inline constexpr char kDTypeName[] = "rill.dtype";
inline constexpr char kKindName[] = "rill.kind";
inline constexpr char kBatchShapeName[] = "rill.batch_shape";
inline constexpr char kDimNamesName[] = "rill.dim_names";
// Values of kKindName.
inline constexpr char kNonTensorKind[] = "non_tensor";
inline constexpr char kNonTensorStackKind[] = "non_tensor_stack";
inline constexpr char kRaggedKind[] = "ragged";

// Nothing where there is no metadata, or no such name.
std::optional<std::string> FindMetadata(const arrow::KeyValueMetadata* metadata,
                                        const char* name);

std::string ShapeText(const Shape& shape);
std::string DimNamesText(const std::vector<std::string>& names);
// INVALID_ARGUMENT.
absl::StatusOr<Shape> ParseShape(absl::string_view text);
absl::StatusOr<std::vector<std::string>> ParseDimNames(absl::string_view text);

// --- Elements ---------------------------------------------------------------

// How a dtype lies in a column: as elements of an Arrow type, `parts` for one.
// Arrow has no bfloat16 and no complex numbers, and its bools are bits.
struct Elements {
  std::shared_ptr<arrow::DataType> type;
  DType storage;  // Its DType.
  int parts = 1;
};
Elements ElementsOf(DType dtype);
// The DType of a plain Arrow type; nothing for others, bool too.
std::optional<DType> StorageOf(const arrow::DataType& type);

absl::Status StatusOf(absl::string_view where, const arrow::Status& status);

}  // namespace rill::arrow_internal

#endif  // RILL_DISTRIBUTED_ARROW_ARROW_COLUMNS_H_
