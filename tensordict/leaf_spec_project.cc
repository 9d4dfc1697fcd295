// SPDX-License-Identifier: Apache-2.0
// LeafSpec::Project.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rill/base/status_macros.h"
#include "rill/tensordict/choices.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill {
namespace {

using tensordict_internal::AsDouble;
using tensordict_internal::AsNumber;
using tensordict_internal::Choices;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::FromDouble;
using tensordict_internal::FromInt;
using tensordict_internal::HasChoices;
using tensordict_internal::IsDiscrete;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;
using tensordict_internal::Range;
using tensordict_internal::Ranges;

// The nearest value of the range. int64 is compared as int64, without rounding.
template <typename T>
T Clamped(T value, const Range<T>& range, bool discrete) {
  if constexpr (kIsReal<T>) {
    double number = AsDouble(value);
    if (std::isnan(number)) number = 0;
    if (discrete) number = std::nearbyint(number);  // Half to even.
    // Bounds are values of T: no rounding.
    return FromDouble<T>(std::clamp(number, range.low, range.high));
  } else {
    return static_cast<T>(
        std::clamp(static_cast<int64_t>(value), range.low, range.high));
  }
}

// Outwards from `option`, the lower one first, so that of two equally near the
// lower one wins.
int64_t NearestAllowed(int64_t option, const bool* mask, int64_t n) {
  if (mask == nullptr) return option;
  for (int64_t away = 0;; ++away) {  // Every mask allows some option.
    if (option - away >= 0 && mask[option - away]) return option - away;
    if (option + away < n && mask[option + away]) return option + away;
  }
}

// The place of the largest element that the mask allows: what a network's
// scores choose. The first of equals; NaN is less than any number.
template <typename T>
int64_t LargestAllowed(const T* group, const bool* mask, int64_t n) {
  const auto exceeds = [](T a, T b) {
    if constexpr (kIsReal<T>) {
      const double x = AsDouble(a);
      const double y = AsDouble(b);
      return x > y || (std::isnan(y) && !std::isnan(x));
    } else {
      return a > b;
    }
  };
  int64_t best = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (mask != nullptr && !mask[i]) continue;
    if (best < 0 || exceeds(group[i], group[best])) best = i;
  }
  return best;
}

// In place, choice by choice. The one-hot group is read whole before it is
// cleared.
template <typename T>
void ProjectChoices(const Choices& choices, T* at) {
  for (int64_t row = 0; row < choices.rows(); ++row) {
    const bool* mask = choices.Mask(row);
    for (const int64_t n : choices.sizes()) {
      if (choices.one_hot()) {
        const int64_t option = LargestAllowed(at, mask, n);
        std::fill_n(at, n, FromInt<T>(0));
        at[option] = FromInt<T>(1);
        at += n;
      } else {
        using Number = typename Range<T>::Number;
        const T value = Clamped<T>(*at, {0, static_cast<Number>(n - 1)},
                                   /*discrete=*/true);
        const auto option = static_cast<int64_t>(AsNumber(value));
        *at++ = FromInt<T>(NearestAllowed(option, mask, n));
      }
      if (mask != nullptr) mask += n;
    }
  }
}

// Bytes of bools that are neither 0 nor 1 become 1, so that comparing T is
// safe.
void Normalise(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<bool>()[i] = LoadElement<bool>(tensor.raw_data() + i);
  }
}

}  // namespace

absl::StatusOr<Tensor> LeafSpec::Project(const Tensor& tensor) const {
  RILL_RETURN_IF_ERROR(CheckDomain()) << "in LeafSpec::Project";
  const Shape batch_shape =
      tensor.shape().Prefix(std::max(tensor.rank() - shape.rank(), 0));
  RILL_RETURN_IF_ERROR(CheckLayout("LeafSpec::Project", batch_shape, tensor));
  RILL_RETURN_IF_ERROR(tensordict_internal::CheckMaskFits(*this, batch_shape))
      << "in LeafSpec::Project";
  // Always a copy: the caller's tensor stays.
  RILL_ASSIGN_OR_RETURN(Tensor host, tensordict_internal::HostCopy(tensor));
  if (domain == Domain::kUnbounded) return host.To(tensor.device());
  if (dtype == DType::kBool) Normalise(host);
  DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (HasChoices(domain)) {
      return ProjectChoices(Choices(*this, batch_shape), host.data<T>());
    }
    const Ranges<T> ranges(*this);
    for (int64_t i = 0; i < host.num_elements(); ++i) {
      T& value = host.data<T>()[i];
      value = Clamped<T>(value, ranges[i], IsDiscrete(domain));
    }
  });
  return host.To(tensor.device());
}

}  // namespace rill
