// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/arrow/arrow_c_data.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "arrow/c/abi.h"
#include "arrow/c/bridge.h"
#include "arrow/record_batch.h"
#include "arrow/result.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/arrow/arrow_columns.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr char kImport[] = "ImportFromC";
// Structs in one another: FromArrow takes 64 dictionaries, and lists inside.
constexpr int kMaxDepth = 128;
// Elements, so that no size in bytes is more than an int64 holds.
constexpr int64_t kMostElements = int64_t{1} << 48;
constexpr int64_t kMostBuffers = 1024;

// Checks what Arrow's importer takes for granted.
absl::Status CheckSchema(const ArrowSchema* schema, int depth) {
  if (schema == nullptr || schema->release == nullptr ||
      schema->format == nullptr) {
    return InvalidArgument(kImport, ": schema: got one that is null, released ",
                           "or without a format, want a whole one");
  }
  if (schema->n_children < 0 || depth > kMaxDepth ||
      (schema->n_children > 0 && schema->children == nullptr)) {
    return InvalidArgument(
        kImport, ": schema: got ", schema->n_children, " children at depth ",
        depth, ", want those that are there, at most ", kMaxDepth, " deep");
  }
  for (int64_t i = 0; i < schema->n_children; ++i) {
    RILL_RETURN_IF_ERROR(CheckSchema(schema->children[i], depth + 1));
  }
  if (schema->dictionary == nullptr) return absl::OkStatus();
  return CheckSchema(schema->dictionary, depth + 1);
}

absl::Status CheckArray(const ArrowArray* array, int depth) {
  if (array == nullptr || array->release == nullptr) {
    return InvalidArgument(kImport, ": array: got one that is null or ",
                           "released, want a whole one");
  }
  if (array->length < 0 || array->offset < 0 || array->length > kMostElements ||
      array->offset > kMostElements) {
    return InvalidArgument(kImport, ": array: got length ", array->length,
                           " and offset ", array->offset, ", want [0, ",
                           kMostElements, "]");
  }
  if (array->n_buffers < 0 || array->n_buffers > kMostBuffers ||
      (array->n_buffers > 0 && array->buffers == nullptr)) {
    return InvalidArgument(kImport, ": array: got ", array->n_buffers,
                           " buffers, want those that are there");
  }
  if (array->n_children < 0 || depth > kMaxDepth ||
      (array->n_children > 0 && array->children == nullptr)) {
    return InvalidArgument(
        kImport, ": array: got ", array->n_children, " children at depth ",
        depth, ", want those that are there, at most ", kMaxDepth, " deep");
  }
  for (int64_t i = 0; i < array->n_children; ++i) {
    RILL_RETURN_IF_ERROR(CheckArray(array->children[i], depth + 1));
  }
  if (array->dictionary == nullptr) return absl::OkStatus();
  return CheckArray(array->dictionary, depth + 1);
}

// Also where the callback does not mark it.
template <typename Struct>
void Release(Struct* released) {
  if (released == nullptr || released->release == nullptr) return;
  released->release(released);
  released->release = nullptr;
}

// Both are whole. Arrow reads the last offset of texts, and the sizes of views,
// before it looks at their buffers.
absl::Status CheckFit(const ArrowSchema* schema, const ArrowArray* array) {
  const absl::string_view format = schema->format;
  const bool is_text =
      format == "u" || format == "U" || format == "z" || format == "Z";
  if (schema->n_children != array->n_children ||
      (schema->dictionary == nullptr) != (array->dictionary == nullptr) ||
      (is_text && array->length > 0 &&
       (array->n_buffers < 2 || array->buffers[1] == nullptr))) {
    return InvalidArgument(kImport, ": array: got one that does not fit \"",
                           format, "\", want its children and offsets");
  }
  if (format == "vu" || format == "vz") {
    return InvalidArgument(kImport, ": array: got views of texts (\"", format,
                           "\"), want texts with offsets");
  }
  for (int64_t i = 0; i < schema->n_children; ++i) {
    RILL_RETURN_IF_ERROR(CheckFit(schema->children[i], array->children[i]));
  }
  if (schema->dictionary == nullptr) return absl::OkStatus();
  return CheckFit(schema->dictionary, array->dictionary);
}

absl::Status CheckStructs(const ArrowSchema* schema, const ArrowArray* array) {
  RILL_RETURN_IF_ERROR(CheckSchema(schema, 0));
  RILL_RETURN_IF_ERROR(CheckArray(array, 0));
  return CheckFit(schema, array);
}

}  // namespace

absl::Status ExportToC(const TensorDict& dict, ArrowSchema* schema,
                       ArrowArray* array, const ToArrowOptions& options) {
  schema->release = nullptr;
  array->release = nullptr;
  RILL_ASSIGN_OR_RETURN(const auto batch, ToArrow(dict, options));
  return arrow_internal::StatusOf(
      "ExportToC", arrow::ExportRecordBatch(*batch, array, schema));
}

absl::StatusOr<TensorDict> ImportFromC(ArrowSchema* schema, ArrowArray* array,
                                       const FromArrowOptions& options) {
  if (absl::Status status = CheckStructs(schema, array); !status.ok()) {
    Release(schema);
    Release(array);
    return status;
  }
  const auto batch = arrow::ImportRecordBatch(array, schema);
  RILL_RETURN_IF_ERROR(arrow_internal::StatusOf(kImport, batch.status()));
  return FromArrow(*batch, options);
}

}  // namespace rill
