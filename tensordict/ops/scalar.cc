// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

namespace rill::ops {
namespace {

using tensordict_internal::DispatchDType;

// `value` as T, if T holds it (floating point: up to one rounding).
template <typename T, typename V>
bool Convert(V value, T* to) {
  if constexpr (tensordict_internal::kIsComplex<T>) {
    typename T::value_type real;
    if (!Convert(value, &real)) return false;
    *to = T(real);
    return true;
  } else if constexpr (tensordict_internal::kIsHalf<T>) {
    const auto wide = static_cast<double>(value);
    *to = tensordict_internal::FromDouble<T>(wide);
    return std::isinf(tensordict_internal::AsDouble(*to)) == std::isinf(wide);
  } else if constexpr (std::is_floating_point_v<T>) {
    *to = static_cast<T>(value);
    return std::isinf(*to) == std::isinf(static_cast<double>(value));
  } else if constexpr (std::is_same_v<V, double>) {
    // 2^63 and 2^64 are the first doubles past the 64-bit types.
    if (!(std::trunc(value) == value) || value < -0x1p63 || value >= 0x1p64) {
      return false;
    }
    return value < 0 ? Convert(static_cast<int64_t>(value), to)
                     : Convert(static_cast<uint64_t>(value), to);
  } else if constexpr (std::is_same_v<T, bool>) {
    *to = value != 0;
    return value == V{0} || value == V{1};
  } else {
    *to = static_cast<T>(value);
    if constexpr (std::is_same_v<V, bool>) {
      return true;
    } else {
      return std::in_range<T>(value);
    }
  }
}

}  // namespace

double Scalar::AsDouble() const {
  return std::visit([](auto value) { return static_cast<double>(value); },
                    value_);
}

std::string Scalar::ToString() const {
  return std::visit(
      [](auto value) { return tensordict_internal::ElementText(value); },
      value_);
}

absl::StatusOr<Tensor> Scalar::ToTensor(absl::string_view caller,
                                        DType dtype) const {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(dtype, {}));
  const bool fits = DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::visit(
        [&](auto value) { return Convert(value, tensor.data<T>()); }, value_);
  });
  if (fits) return tensor;
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": scalar: got ", ToString(), ", want a value that ",
                   DTypeName(dtype), " can hold"));
}

absl::StatusOr<Tensor> Full(DType dtype, const Shape& shape,
                            const Scalar& value) {
  RILL_ASSIGN_OR_RETURN(const Tensor one, value.ToTensor("ops::Full", dtype));
  RILL_ASSIGN_OR_RETURN(Tensor full, Tensor::Empty(dtype, shape));
  const auto bytes = static_cast<size_t>(full.size_bytes());
  if (bytes == 0) return full;
  // Doubles what is there already.
  auto done = static_cast<size_t>(DTypeSize(dtype));
  std::memcpy(full.raw_data(), one.raw_data(), done);
  while (done < bytes) {
    const size_t more = std::min(done, bytes - done);
    std::memcpy(full.raw_data() + done, full.raw_data(), more);
    done += more;
  }
  return full;
}

}  // namespace rill::ops
