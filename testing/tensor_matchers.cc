// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/tensor_matchers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using tensor_internal::DispatchDType;
using tensor_internal::ElementText;
using tensor_internal::kIsHalf;
using tensor_internal::kIsReal;
using tensor_internal::LoadElement;
using testing_internal::TensorDictMatcher;
using testing_internal::TensorMatcher;

absl::StatusOr<Tensor> OnHost(const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const Tensor host, tensor.To(Device::Cpu()));
  return host.Contiguous();
}

std::string Layout(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), shape.ToString());
}

// How many representable values lie between two of one real type. All of them
// in order are the integers of their bits, with the negative ones turned round.
template <typename T>
uint64_t UlpDistance(T a, T b) {
  const auto place = [](T value) -> int64_t {
    if constexpr (kIsHalf<T>) {
      const int64_t size = value.bits & 0x7fff;
      return (value.bits & 0x8000) != 0 ? -size : size;
    } else {
      using Bits =
          std::conditional_t<sizeof(T) == sizeof(int64_t), int64_t, int32_t>;
      const int64_t bits = std::bit_cast<Bits>(value);
      return bits < 0 ? std::numeric_limits<Bits>::min() - bits : bits;
    }
  };
  const int64_t x = place(a);
  const int64_t y = place(b);
  return static_cast<uint64_t>(std::max(x, y)) -
         static_cast<uint64_t>(std::min(x, y));
}

template <typename T>
bool IsNaN(T value) {
  return std::isnan(tensor_internal::AsDouble(value));
}

// "" where every element of two contiguous host tensors with one dtype and
// number of elements is at most `max_ulp` apart, else the first that is not.
std::string FirstDifference(const Tensor& got, const Tensor& want,
                            uint64_t max_ulp) {
  return DispatchDType(got.dtype(), [&](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const T x = LoadElement<T>(got.raw_data() + i * sizeof(T));
      const T y = LoadElement<T>(want.raw_data() + i * sizeof(T));
      std::string distance;
      if constexpr (kIsReal<T>) {
        if (IsNaN(x) && IsNaN(y)) continue;
        if (!IsNaN(x) && !IsNaN(y)) {
          const uint64_t ulp = UlpDistance(x, y);
          if (ulp <= max_ulp) continue;
          distance = absl::StrCat(", ", ulp, " ulp apart");
        }
      } else if (x == y) {
        continue;
      }
      return absl::StrCat("whose element ", i, " (row-major) is ",
                          ElementText(x), ", want ", ElementText(y), distance);
    }
    return "";
  });
}

// The same for tensors anywhere; names layouts that differ.
std::string Difference(const Tensor& got, const Tensor& want,
                       uint64_t max_ulp) {
  const absl::StatusOr<Tensor> a = OnHost(got);
  const absl::StatusOr<Tensor> b = OnHost(want);
  if (!a.ok()) return std::string(a.status().message());
  if (!b.ok()) return std::string(b.status().message());
  return FirstDifference(*a, *b, max_ulp);
}

std::string LayoutDifference(const Tensor& got, DType dtype,
                             const Shape& shape) {
  if (got.dtype() == dtype && got.shape() == shape) return "";
  return absl::StrCat("which is ", Layout(got.dtype(), got.shape()));
}

}  // namespace

TensorMatcher testing_internal::ElementsMatcher(Tensor want) {
  std::string description = absl::StrCat("elements ", want.DebugString());
  return TensorMatcher(
      std::move(description), [want = std::move(want)](const Tensor& got) {
        if (got.dtype() != want.dtype()) {
          return absl::StrCat("whose dtype is ", DTypeName(got.dtype()));
        }
        if (got.num_elements() != want.num_elements()) {
          return absl::StrCat("which has ", got.num_elements(),
                              " elements, want ", want.num_elements());
        }
        return Difference(got, want, /*max_ulp=*/0);
      });
}

TensorDictMatcher testing_internal::KeysMatcher(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  std::string description =
      absl::StrCat("a dictionary with the keys ", absl::StrJoin(keys, ", "));
  return TensorDictMatcher(
      std::move(description),
      [keys = std::move(keys)](const TensorDict& dict) -> std::string {
        std::vector<std::string> got = dict.LeafKeys();
        std::sort(got.begin(), got.end());
        if (got == keys) return "";
        std::vector<std::string> missing, extra;
        std::set_difference(keys.begin(), keys.end(), got.begin(), got.end(),
                            std::back_inserter(missing));
        std::set_difference(got.begin(), got.end(), keys.begin(), keys.end(),
                            std::back_inserter(extra));
        return absl::StrCat("where missing are {", absl::StrJoin(missing, ", "),
                            "} and too many {", absl::StrJoin(extra, ", "),
                            "}");
      });
}

TensorMatcher TensorIs(DType dtype, const Shape& shape) {
  return TensorMatcher(Layout(dtype, shape), [dtype, shape](const Tensor& got) {
    return LayoutDifference(got, dtype, shape);
  });
}

TensorMatcher TensorNear(Tensor want, int64_t max_ulp) {
  std::string description =
      absl::StrCat("within ", max_ulp, " ulp of ", want.DebugString());
  return TensorMatcher(std::move(description), [want = std::move(want),
                                                max_ulp](const Tensor& got) {
    std::string layout = LayoutDifference(got, want.dtype(), want.shape());
    if (!layout.empty()) return layout;
    return Difference(got, want, static_cast<uint64_t>(max_ulp));
  });
}

TensorMatcher BitEqualTo(Tensor want) {
  std::string description = absl::StrCat("bit-equal to ", want.DebugString());
  return TensorMatcher(
      std::move(description),
      [want = std::move(want)](const Tensor& got) -> std::string {
        std::string layout = LayoutDifference(got, want.dtype(), want.shape());
        if (!layout.empty()) return layout;
        const absl::StatusOr<bool> equal = got.BitEquals(want);
        if (!equal.ok()) return std::string(equal.status().message());
        if (*equal) return "";
        std::string difference = Difference(got, want, /*max_ulp=*/0);
        return difference.empty() ? "whose bits differ (0 and -0, or NaN)"
                                  : difference;
      });
}

TensorDictMatcher BitEqualTo(TensorDict want) {
  std::string description = absl::StrCat("bit-equal to ", want.DebugString());
  return TensorDictMatcher(
      std::move(description),
      [want = std::move(want)](const TensorDict& got) -> std::string {
        return std::string(got.CheckEqual(want).message());
      });
}

}  // namespace rill
