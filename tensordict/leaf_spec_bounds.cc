// SPDX-License-Identifier: Apache-2.0
// LeafSpec: bounds by element.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill {
namespace {

using tensordict_internal::AsNumber;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::ElementText;
using tensordict_internal::FromDouble;
using tensordict_internal::FromNumber;
using tensordict_internal::HostCopy;
using tensordict_internal::LoadElement;
using tensordict_internal::Range;
using tensordict_internal::RangeOf;

// Checks bounds by element and finds the hull; true where all are the same and
// doubles say them exactly.
template <typename T>
absl::StatusOr<bool> ScanBounds(const Tensor& lows, const Tensor& highs,
                                LeafSpec* spec) {
  // Starts empty, so that each element extends it.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool same = true;
  spec->low = kInfinity;
  spec->high = -kInfinity;
  // Without elements there is no first; 0 then fits the 0 that both bounds get.
  const T first_low = lows.num_elements() > 0 ? LoadElement<T>(lows.raw_data())
                                              : FromDouble<T>(0);
  const T first_high = lows.num_elements() > 0
                           ? LoadElement<T>(highs.raw_data())
                           : FromDouble<T>(0);
  for (int64_t i = 0; i < lows.num_elements(); ++i) {
    const T low = LoadElement<T>(lows.raw_data() + i * sizeof(T));
    const T high = LoadElement<T>(highs.raw_data() + i * sizeof(T));
    // Numbers of a Range: int64 is not rounded to double. Written so that NaN
    // fails.
    if (!(AsNumber(low) <= AsNumber(high))) {
      return absl::InvalidArgumentError(
          absl::StrCat("LeafSpec::Bounded: element ", i, " of ",
                       lows.shape().ToString(), ": got [", ElementText(low),
                       ", ", ElementText(high), "], want low <= high"));
    }
    same = same && low == first_low && high == first_high;
    spec->low = std::min(spec->low, static_cast<double>(AsNumber(low)));
    spec->high = std::max(spec->high, static_cast<double>(AsNumber(high)));
  }
  if (lows.num_elements() == 0) spec->low = spec->high = 0;
  if (!same) return false;
  // All are the same. Scalars serve only where doubles hold the bounds exactly,
  // which is not so for large int64.
  const Range<T> range = RangeOf<T>(*spec);
  return range.low == AsNumber(first_low) && range.high == AsNumber(first_high);
}

// fn of the bounds of each element, in the spec's dtype.
template <typename T>
absl::Status MapEach(const LeafSpec& spec, absl::FunctionRef<double(double)> fn,
                     T* least, T* most) {
  const tensordict_internal::Ranges<T> ranges(spec);
  for (int64_t i = 0; i < spec.shape.num_elements(); ++i) {
    // A falling fn swaps the ends.
    const auto [low, high] =
        std::minmax({fn(static_cast<double>(ranges[i].low)),
                     fn(static_cast<double>(ranges[i].high))});
    // Cut to what the dtype holds, as scalar bounds are.
    const LeafSpec one = LeafSpec::Bounded(spec.dtype, {}, low, high);
    RILL_RETURN_IF_ERROR(one.CheckDomain())
        << "in LeafSpec::MapBounds, element " << i;
    const Range<T> range = RangeOf<T>(one);
    least[i] = FromNumber<T>(range.low);
    most[i] = FromNumber<T>(range.high);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LeafSpec> LeafSpec::Bounded(const Tensor& low,
                                           const Tensor& high) {
  if (low.dtype() != high.dtype() || low.shape() != high.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LeafSpec::Bounded: got low ", DTypeName(low.dtype()),
        low.shape().ToString(), " and high ", DTypeName(high.dtype()),
        high.shape().ToString(), ", want equal dtypes and shapes"));
  }
  if (!tensordict_internal::HasArithmetic(low.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::Bounded: dtype: got ", DTypeName(low.dtype()),
                     ", want one with arithmetic"));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor lows, HostCopy(low));
  RILL_ASSIGN_OR_RETURN(const Tensor highs, HostCopy(high));
  LeafSpec spec = Bounded(low.dtype(), low.shape(), 0, 0);
  absl::StatusOr<bool> same = DispatchArithmetic(low.dtype(), [&](auto tag) {
    return ScanBounds<typename decltype(tag)::type>(lows, highs, &spec);
  });
  if (!same.ok()) return same.status();
  // Scalars: the tables would say the same thing element by element.
  if (*same) return spec;
  auto tables = std::make_shared<Tables>();
  tables->low = lows;
  tables->high = highs;
  spec.tables = std::move(tables);
  return spec;
}

absl::StatusOr<LeafSpec> LeafSpec::MapBounds(
    absl::FunctionRef<double(double)> fn) const {
  if (domain != Domain::kBounded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LeafSpec::MapBounds: got ", ToString(), ", want a bounded leaf"));
  }
  if (lows() == nullptr) {
    const auto [least, most] = std::minmax({fn(low), fn(high)});
    LeafSpec spec = Bounded(dtype, shape, least, most);
    RILL_RETURN_IF_ERROR(spec.CheckDomain()) << "in LeafSpec::MapBounds";
    return spec;
  }
  RILL_ASSIGN_OR_RETURN(const Tensor least, lows()->Clone());
  RILL_ASSIGN_OR_RETURN(const Tensor most, highs()->Clone());
  RILL_RETURN_IF_ERROR(DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return MapEach<T>(*this, fn, least.data<T>(), most.data<T>());
  }));
  return Bounded(least, most);
}

}  // namespace rill
