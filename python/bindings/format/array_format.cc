// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/format/array_format.h"

#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "rill/tensors/dtype.h"

namespace rill::python {
namespace {

constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32,
                             DType::kInt64};
constexpr DType kUnsigned[] = {DType::kUInt8, DType::kUInt16, DType::kUInt32,
                               DType::kUInt64};

std::optional<DType> IntegerOf(const DType (&kinds)[4], int64_t bytes) {
  for (const DType dtype : kinds) {
    if (DTypeSize(dtype) == bytes) return dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeOfFormat(absl::string_view format, int64_t bytes) {
  if (!format.empty() && absl::StrContains("@=<", format[0])) {
    format.remove_prefix(1);
  }
  const bool is_complex = absl::ConsumePrefix(&format, "Z");
  if (format.size() != 1) return std::nullopt;
  if (is_complex) {
    return format == "f"   ? std::optional(DType::kComplex64)
           : format == "d" ? std::optional(DType::kComplex128)
                           : std::nullopt;
  }
  switch (format[0]) {
    case '?':
      return DType::kBool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return IntegerOf(kSigned, bytes);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return IntegerOf(kUnsigned, bytes);
    case 'e':
      return DType::kFloat16;
    case 'f':
      return DType::kFloat32;
    case 'd':
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

// Whether the sizes' product, of elements of item_bytes > 0, is `bytes`.
bool IsWhole(absl::Span<const int64_t> sizes, int64_t item_bytes,
             int64_t bytes) {
  int64_t product = item_bytes;
  bool has_none = false;
  for (const int64_t size : sizes) {
    if (size < 0) return false;
    has_none = has_none || size == 0;
    if (!has_none && __builtin_mul_overflow(product, size, &product)) {
      return false;
    }
  }
  return bytes == (has_none ? 0 : product);
}

}  // namespace

std::optional<DType> DTypeOfExport(absl::string_view format, int64_t item_bytes,
                                   absl::Span<const int64_t> sizes,
                                   int64_t bytes) {
  const std::optional<DType> dtype = DTypeOfFormat(format, item_bytes);
  if (!dtype.has_value() || DTypeSize(*dtype) != item_bytes ||
      !IsWhole(sizes, item_bytes, bytes)) {
    return std::nullopt;
  }
  return dtype;
}

}  // namespace rill::python
