// SPDX-License-Identifier: Apache-2.0
// LeafSpec::Bounded: elements lie in [low, high], one for all or one each.
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/domains/element_domain.h"

namespace rill {
namespace tensor_internal {
namespace {

int64_t ToInt64(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (value >= kTwoTo63) return std::numeric_limits<int64_t>::max();
  if (value < -kTwoTo63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// The whole numbers between the bounds, for integers.
Limits LimitsBetween(double low, double high) {
  return {low, high, ToInt64(std::ceil(low)), ToInt64(std::floor(high))};
}

// Checks bounds by element and finds the hull; true where all are the same and
// doubles say them exactly.
template <typename T>
absl::StatusOr<bool> ScanBounds(const Tensor& lows, const Tensor& highs,
                                LeafSpec* spec) {
  // Without elements both bounds are 0, else each element extends the hull.
  if (lows.num_elements() == 0) return true;
  bool same = true;
  const T first_low = At<T>(lows, 0);
  const T first_high = At<T>(highs, 0);
  spec->low = static_cast<double>(NumberOf(first_low));
  spec->high = static_cast<double>(NumberOf(first_high));
  for (int64_t i = 0; i < lows.num_elements(); ++i) {
    const T low = At<T>(lows, i);
    const T high = At<T>(highs, i);
    // Written so that NaN fails; int64 is not rounded to double.
    if (!(NumberOf(low) <= NumberOf(high))) {
      return InvalidArgument("LeafSpec::Bounded: element ", i, " of ",
                             lows.shape().ToString(), ": got [",
                             ElementText(low), ", ", ElementText(high),
                             "], want low <= high");
    }
    same = same && low == first_low && high == first_high;
    spec->low = std::min(spec->low, static_cast<double>(NumberOf(low)));
    spec->high = std::max(spec->high, static_cast<double>(NumberOf(high)));
  }
  if (!same) return false;
  // Scalars serve only where doubles hold the bounds exactly, which is not so
  // for large int64.
  const Range<T> range = RangeOf<T>(LimitsBetween(spec->low, spec->high));
  return range.low == NumberOf(first_low) && range.high == NumberOf(first_high);
}

// fn of the bounds of each element, in the spec's dtype.
template <typename T>
absl::Status MapEach(absl::FunctionRef<double(double)> fn, const Tensor& least,
                     const Tensor& most) {
  for (int64_t i = 0; i < least.num_elements(); ++i) {
    // A falling fn swaps the ends.
    const auto [low, high] =
        std::minmax({fn(static_cast<double>(NumberOf(At<T>(least, i)))),
                     fn(static_cast<double>(NumberOf(At<T>(most, i))))});
    RILL_RETURN_IF_ERROR(
        LeafSpec::Bounded(least.dtype(), {}, low, high).CheckDomain())
        << "in LeafSpec::MapBounds, element " << i;
    // Cut to what the dtype holds, as scalar bounds are.
    const Range<T> range = RangeOf<T>(LimitsBetween(low, high));
    least.data<T>()[i] = FromNumber<T>(range.low);
    most.data<T>()[i] = FromNumber<T>(range.high);
  }
  return absl::OkStatus();
}

class Bounded final : public ElementDomain {
 public:
  std::string ToString(const LeafSpec& spec) const override {
    return absl::StrCat("[", ElementText(spec.low), ", ",
                        ElementText(spec.high), "]",
                        spec.lows() == nullptr ? "" : " by element");
  }

  absl::Status CheckDomain(const LeafSpec& spec) const override {
    if (!(spec.low <= spec.high)) {
      return InvalidArgument("bounds: got [", spec.low, ", ", spec.high,
                             "], want low <= high");
    }
    RILL_RETURN_IF_ERROR(CheckTables(spec));
    const Limits limits = LimitsOf(spec);
    const bool holds_some =
        DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
          const Range<T> range = RangeOf<T>(limits);
          return range.low <= range.high;
        });
    return holds_some ? absl::OkStatus() : CannotHold(spec);
  }

  // The bounds of every element, also where scalars say them.
  absl::StatusOr<std::vector<Tensor>> Parts(const LeafSpec& spec,
                                            const Shape&) const override {
    if (spec.lows() != nullptr) return std::vector{*spec.lows(), *spec.highs()};
    RILL_ASSIGN_OR_RETURN(const Tensor low, Tensor::Zeros(spec.dtype, {}));
    RILL_ASSIGN_OR_RETURN(const Tensor high, Tensor::Zeros(spec.dtype, {}));
    DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
      const Range<T> range = RangeOf<T>(LimitsOf(spec));
      *low.data<T>() = FromNumber<T>(range.low);
      *high.data<T>() = FromNumber<T>(range.high);
    });
    std::vector<Tensor> parts(2);
    RILL_ASSIGN_OR_RETURN(parts[0], low.Expand(spec.shape));
    RILL_ASSIGN_OR_RETURN(parts[1], high.Expand(spec.shape));
    return parts;
  }

 private:
  Limits LimitsOf(const LeafSpec& spec) const override {
    return LimitsBetween(spec.low, spec.high);
  }
};

constexpr Bounded kDomain;

}  // namespace

constinit const LeafDomain& kBoundedDomain = kDomain;

}  // namespace tensor_internal

LeafSpec LeafSpec::Bounded(DType dtype, const Shape& shape, double low,
                           double high) {
  return {dtype, shape, Domain::kBounded, low, high};
}

absl::StatusOr<LeafSpec> LeafSpec::Bounded(const Tensor& low,
                                           const Tensor& high) {
  if (low.dtype() != high.dtype() || low.shape() != high.shape()) {
    return InvalidArgument(
        "LeafSpec::Bounded: got low ", DTypeName(low.dtype()),
        low.shape().ToString(), " and high ", DTypeName(high.dtype()),
        high.shape().ToString(), ", want equal dtypes and shapes");
  }
  if (!tensor_internal::HasArithmetic(low.dtype())) {
    return InvalidArgument("LeafSpec::Bounded: dtype: got ",
                           DTypeName(low.dtype()),
                           ", want one with arithmetic");
  }
  auto own = std::make_shared<Tables>();
  RILL_ASSIGN_OR_RETURN(own->low, tensor_internal::HostCopy(low));
  RILL_ASSIGN_OR_RETURN(own->high, tensor_internal::HostCopy(high));
  LeafSpec spec = Bounded(low.dtype(), low.shape(), 0, 0);
  RILL_ASSIGN_OR_RETURN(
      const bool same,
      tensor_internal::DispatchArithmetic(
          spec.dtype, [&]<typename T>(tensor_internal::TypeTag<T>) {
            return tensor_internal::ScanBounds<T>(own->low, own->high, &spec);
          }));
  // Scalars: the tables would say the same thing element by element.
  if (!same) spec.tables = std::move(own);
  return spec;
}

absl::StatusOr<LeafSpec> LeafSpec::MapBounds(
    absl::FunctionRef<double(double)> fn) const {
  if (domain != Domain::kBounded) {
    return InvalidArgument("LeafSpec::MapBounds: got ", ToString(),
                           ", want a bounded leaf");
  }
  if (lows() == nullptr) {
    const auto [least, most] = std::minmax({fn(low), fn(high)});
    LeafSpec spec = Bounded(dtype, shape, least, most);
    RILL_RETURN_IF_ERROR(spec.CheckDomain()) << "in LeafSpec::MapBounds";
    return spec;
  }
  RILL_ASSIGN_OR_RETURN(const Tensor least, lows()->Clone());
  RILL_ASSIGN_OR_RETURN(const Tensor most, highs()->Clone());
  RILL_RETURN_IF_ERROR(tensor_internal::DispatchArithmetic(
      dtype, [&]<typename T>(tensor_internal::TypeTag<T>) {
        return tensor_internal::MapEach<T>(fn, least, most);
      }));
  return Bounded(least, most);
}

}  // namespace rill
