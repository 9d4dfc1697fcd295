// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_DTYPE_H_
#define RILL_TENSORS_DTYPE_H_

#include <complex>
#include <cstdint>
#include <iosfwd>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill {

// Element types. The first group has arithmetic; unsigned types wider than a
// byte and complex ones are stored, copied and compared only. Half and bfloat16
// are kept as their 16 bits here; eigen_view.h shows them as Eigen's types,
// which compute. Values are part of no format: files use the names.
enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kUInt16,
  kUInt32,
  kUInt64,
  kComplex64,
  kComplex128,
};
inline constexpr int kNumDTypes = 15;

// IEEE binary16 and bfloat16 as bits.
struct Float16 {
  uint16_t bits = 0;
  friend bool operator==(const Float16&, const Float16&) = default;
};
struct BFloat16 {
  uint16_t bits = 0;
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

// Bytes of one element.
constexpr int64_t DTypeSize(DType dtype) {
  constexpr int8_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2,
                                         4, 8, 2, 4, 8, 8, 16};
  // A dtype read from a damaged place must not index past the table.
  const int i = static_cast<int>(dtype);
  return kSizes[i < kNumDTypes ? i : 0];
}
// "float32", "bool", ...: NumPy's and torch's names.
absl::string_view DTypeName(DType dtype);
// The inverse. INVALID_ARGUMENT for unknown names; those that exist elsewhere
// but not here (quantised types, complex32, float8) are refused by name.
absl::StatusOr<DType> DTypeFromName(absl::string_view name);

// The name, for logs and failing tests.
std::ostream& operator<<(std::ostream& os, DType dtype);

bool IsFloatingPoint(DType dtype);
bool IsInteger(DType dtype);  // Signed or unsigned, not bool.

// DTypeOf<T>: the DType of a C++ type; not defined for other types.
template <typename T>
struct DTypeTraits;
template <typename T>
inline constexpr DType DTypeOf = DTypeTraits<T>::kDType;

#define RILL_DTYPE_TRAITS_(type, value)           \
  template <>                                     \
  struct DTypeTraits<type> {                      \
    static constexpr DType kDType = DType::value; \
  }
RILL_DTYPE_TRAITS_(bool, kBool);
RILL_DTYPE_TRAITS_(uint8_t, kUInt8);
RILL_DTYPE_TRAITS_(int8_t, kInt8);
RILL_DTYPE_TRAITS_(int16_t, kInt16);
RILL_DTYPE_TRAITS_(int32_t, kInt32);
RILL_DTYPE_TRAITS_(int64_t, kInt64);
RILL_DTYPE_TRAITS_(Float16, kFloat16);
RILL_DTYPE_TRAITS_(BFloat16, kBFloat16);
RILL_DTYPE_TRAITS_(float, kFloat32);
RILL_DTYPE_TRAITS_(double, kFloat64);
RILL_DTYPE_TRAITS_(uint16_t, kUInt16);
RILL_DTYPE_TRAITS_(uint32_t, kUInt32);
RILL_DTYPE_TRAITS_(uint64_t, kUInt64);
RILL_DTYPE_TRAITS_(std::complex<float>, kComplex64);
RILL_DTYPE_TRAITS_(std::complex<double>, kComplex128);
#undef RILL_DTYPE_TRAITS_

}  // namespace rill

#endif  // RILL_TENSORS_DTYPE_H_
