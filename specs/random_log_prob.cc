// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/random_log_prob.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "rill/base/status_macros.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/element_domain.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

using tensor_internal::Choices;
using tensor_internal::DispatchArithmetic;
using tensor_internal::kIsReal;
using tensor_internal::TypeTag;

struct Bounds {
  double low;
  double high;
};

// Those between which LeafSpec::Random draws element i of the spec's shape.
template <typename T>
Bounds BoundsOf(const LeafSpec& spec, int64_t i) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (spec.domain == LeafSpec::Domain::kBinary) return {0, 1};
  if (spec.domain == LeafSpec::Domain::kBounded) {
    if (spec.lows() == nullptr) return {spec.low, spec.high};
    return {static_cast<double>(tensor_internal::NumberOf(
                tensor_internal::At<T>(*spec.lows(), i))),
            static_cast<double>(tensor_internal::NumberOf(
                tensor_internal::At<T>(*spec.highs(), i)))};
  }
  return kIsReal<T> ? Bounds{-kInfinity, kInfinity} : Bounds{-100, 100};
}

// Of a whole number between the bounds, cut to what T holds.
template <typename T>
double LogProbOfWhole(Bounds bounds) {
  double low = std::ceil(bounds.low), high = std::floor(bounds.high);
  if constexpr (!kIsReal<T>) {
    low = std::max(low, static_cast<double>(std::numeric_limits<T>::min()));
    high = std::min(high, static_cast<double>(std::numeric_limits<T>::max()));
  }
  return -std::log(high - low + 1);
}

double LogDensityOfReal(Bounds bounds, double value) {
  const bool has_low = std::isfinite(bounds.low);
  const bool has_high = std::isfinite(bounds.high);
  if (has_low && has_high) {
    if (bounds.low == bounds.high) return 0;
    // Halves first: the distance may exceed the largest number.
    return -std::log(bounds.high / 2 - bounds.low / 2) - std::numbers::ln2;
  }
  if (has_low) return bounds.low - value;
  if (has_high) return value - bounds.high;
  return -value * value / 2 - std::log(2 * std::numbers::pi) / 2;
}

}  // namespace

int64_t RandomDrawsPerLane(const LeafSpec& spec) {
  if (!tensor_internal::HasChoices(spec.domain)) {
    return spec.shape.num_elements();
  }
  return Choices(spec, Shape()).size();
}

absl::Status AddRandomLogProbs(absl::string_view caller, const LeafSpec& spec,
                               const Tensor& values, int64_t parts,
                               absl::Span<double> sums) {
  const int64_t draws = RandomDrawsPerLane(spec);
  const int64_t lanes = values.rank() == 0 ? 0 : values.shape()[0];
  if (parts < 1 || draws % parts != 0 ||
      static_cast<int64_t>(sums.size()) != lanes * parts) {
    return InvalidArgument(caller, ": got ", parts, " parts of ",
                           spec.ToString(), " and ", sums.size(),
                           " sums, want parts that divide it");
  }
  const int64_t width = draws / parts;
  if (width == 0) return absl::OkStatus();
  if (tensor_internal::HasChoices(spec.domain)) {
    const Shape batch = {lanes};
    RILL_RETURN_IF_ERROR(tensor_internal::CheckMaskFits(spec, batch)) << caller;
    int64_t number = 0;
    for (Choices choice(spec, batch); !choice.done(); choice.Next()) {
      const int64_t n =
          choice.mask() == nullptr
              ? choice.n()
              : std::count(choice.mask(), choice.mask() + choice.n(), true);
      sums[static_cast<size_t>(number++ / width)] -=
          std::log(static_cast<double>(n));
    }
    return absl::OkStatus();
  }
  const bool is_whole = spec.domain == LeafSpec::Domain::kBinary;
  DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t i = 0; i < lanes * draws; ++i) {
      const Bounds bounds = BoundsOf<T>(spec, i % draws);
      double& sum = sums[static_cast<size_t>(i / width)];
      if constexpr (kIsReal<T>) {
        if (!is_whole) {
          sum += LogDensityOfReal(
              bounds,
              tensor_internal::AsDouble(tensor_internal::At<T>(values, i)));
          continue;
        }
      }
      sum += LogProbOfWhole<T>(bounds);
    }
  });
  return absl::OkStatus();
}

}  // namespace rill
