// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_ELEMENT_H_
#define RILL_TENSORS_ELEMENT_H_

#include <charconv>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/half.h"

// Single elements by run-time dtype, for the .cc files of this package.
namespace rill::tensor_internal {

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls fn(TypeTag<T>()) with the C++ type of `dtype`; all calls of fn return
// the same type.
template <typename Fn>
auto DispatchDType(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kBool:
      return fn(TypeTag<bool>());
    case DType::kUInt8:
      return fn(TypeTag<uint8_t>());
    case DType::kInt8:
      return fn(TypeTag<int8_t>());
    case DType::kInt16:
      return fn(TypeTag<int16_t>());
    case DType::kInt32:
      return fn(TypeTag<int32_t>());
    case DType::kInt64:
      return fn(TypeTag<int64_t>());
    case DType::kFloat16:
      return fn(TypeTag<Float16>());
    case DType::kBFloat16:
      return fn(TypeTag<BFloat16>());
    case DType::kFloat32:
      return fn(TypeTag<float>());
    case DType::kFloat64:
      return fn(TypeTag<double>());
    case DType::kUInt16:
      return fn(TypeTag<uint16_t>());
    case DType::kUInt32:
      return fn(TypeTag<uint32_t>());
    case DType::kUInt64:
      return fn(TypeTag<uint64_t>());
    case DType::kComplex64:
      return fn(TypeTag<std::complex<float>>());
    case DType::kComplex128:
      break;
  }
  return fn(TypeTag<std::complex<double>>());
}

template <typename T>
inline constexpr bool kIsHalf =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> ||
                                   std::is_same_v<T, std::complex<double>>;
// Floating point, real.
template <typename T>
inline constexpr bool kIsReal = kIsHalf<T> || std::is_floating_point_v<T>;

// The dtypes that Cast and the specs' domains know.
constexpr bool HasArithmetic(DType dtype) { return dtype <= DType::kFloat64; }
template <typename T>
inline constexpr bool kHasArithmetic = HasArithmetic(DTypeOf<T>);

// DispatchDType of dtypes with arithmetic; for others a value of the result.
template <typename Fn>
auto DispatchArithmetic(DType dtype, Fn&& fn) {
  return DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasArithmetic<T>) {
      return fn(tag);
    } else {
      return std::invoke_result_t<Fn, TypeTag<float>>();
    }
  });
}

// A bool is read as a byte: one from a file may be neither 0 nor 1.
template <typename T>
T LoadElement(const std::byte* at) {
  if constexpr (std::is_same_v<T, bool>) {
    return *at != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
}

// Real floating point as double.
template <typename T>
double AsDouble(T value) {
  if constexpr (kIsHalf<T>) {
    return ToDouble(value);
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

// The shortest text that reads back as the same value.
template <typename T>
std::string ElementText(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (kIsComplex<T>) {
    return absl::StrCat("(", ElementText(value.real()), ", ",
                        ElementText(value.imag()), ")");
  } else if constexpr (kIsHalf<T>) {
    return ElementText(static_cast<float>(ToDouble(value)));
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[64];
    return std::string(text, std::to_chars(text, text + 64, value).ptr);
  } else {
    return std::to_string(value);
  }
}

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_ELEMENT_H_
