// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/dtype.h"

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

struct Row {
  absl::string_view name;
  bool is_float;
  bool is_integer;
};

// In the order of DType.
constexpr Row kRows[kNumDTypes] = {
    {"bool", false, false},       {"uint8", false, true},
    {"int8", false, true},        {"int16", false, true},
    {"int32", false, true},       {"int64", false, true},
    {"float16", true, false},     {"bfloat16", true, false},
    {"float32", true, false},     {"float64", true, false},
    {"uint16", false, true},      {"uint32", false, true},
    {"uint64", false, true},      {"complex64", false, false},
    {"complex128", false, false},
};

// A dtype read from a damaged place must not index past the table.
const Row& RowOf(DType dtype) {
  const int i = static_cast<int>(dtype);
  return kRows[i < kNumDTypes ? i : 0];
}

// Names that torch and others use for dtypes that Rill lacks: the message then
// says how to go on.
bool IsKnownElsewhere(absl::string_view name) {
  return name == "complex32" || absl::StartsWith(name, "float8") ||
         absl::StartsWith(name, "qint") || absl::StartsWith(name, "quint");
}

}  // namespace

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

std::ostream& operator<<(std::ostream& os, DType dtype) {
  return os << DTypeName(dtype);
}

absl::StatusOr<DType> DTypeFromName(absl::string_view name) {
  std::string known;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
    absl::StrAppend(&known, i == 0 ? "" : ", ", kRows[i].name);
  }
  if (IsKnownElsewhere(name)) {
    return InvalidArgument(
        "DTypeFromName: dtype \"", name,
        "\" is not supported, want one of: ", known,
        "; convert the data to one of them where they were written");
  }
  return InvalidArgument("DTypeFromName: unknown dtype: got \"", name,
                         "\", want one of: ", known);
}

bool IsFloatingPoint(DType dtype) { return RowOf(dtype).is_float; }
bool IsInteger(DType dtype) { return RowOf(dtype).is_integer; }

}  // namespace rill
