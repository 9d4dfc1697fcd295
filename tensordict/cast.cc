// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/cast_kernels.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using tensordict_internal::AsDouble;
using tensordict_internal::DispatchDType;
using tensordict_internal::FromDouble;
using tensordict_internal::HasArithmetic;
using tensordict_internal::kHasArithmetic;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;

// What C++ leaves undefined, a float outside int64, is the lowest value.
int64_t Truncate(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(value >= -kTwoTo63 && value < kTwoTo63)) {
    return std::numeric_limits<int64_t>::min();
  }
  return static_cast<int64_t>(value);
}

template <typename To, typename From>
To CastElement(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, float> && std::is_integral_v<From>) {
    return static_cast<float>(value);  // One rounding, not two.
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsReal<From>) return AsDouble(value) != 0;
    if constexpr (!kIsReal<From>) return value != 0;
  } else if constexpr (kIsReal<To>) {
    return FromDouble<To>(AsDouble(value));
  } else if constexpr (kIsReal<From>) {
    return static_cast<To>(Truncate(AsDouble(value)));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

absl::StatusOr<Tensor> Cast(const Tensor& tensor, DType dtype) {
  if (!HasArithmetic(tensor.dtype()) || !HasArithmetic(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Cast: got ", DTypeName(tensor.dtype()), " to ", DTypeName(dtype),
        ", want dtypes with arithmetic (bool, uint8, int8 to int64, float16, "
        "bfloat16, float32, float64)"));
  }
  if (!tensor.is_host()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Cast: the tensor is on ", tensor.device().ToString(),
                     ", want host memory; use To(Device::Cpu()) first"));
  }
  if (dtype == tensor.dtype()) return tensor;
  RILL_ASSIGN_OR_RETURN(const Tensor from, tensor.Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor to, Tensor::Empty(dtype, tensor.shape()));
  const int64_t count = from.num_elements();
  if (tensordict_internal::CastWithVectors(from.dtype(), dtype, from.raw_data(),
                                           to.raw_data(), count)) {
    return to;
  }
  DispatchDType(from.dtype(), [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    DispatchDType(dtype, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      if constexpr (kHasArithmetic<From> && kHasArithmetic<To>) {
        To* out = to.data<To>();
        for (int64_t i = 0; i < count; ++i) {
          out[i] = CastElement<To>(
              LoadElement<From>(from.raw_data() + i * sizeof(From)));
        }
      }
    });
  });
  return to;
}

}  // namespace rill
