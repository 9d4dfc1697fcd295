// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/domains/element_domain.h"

#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rill::tensor_internal {
namespace {

// Two uniform doubles for an element: [0, 1) and (0, 1], of 53 bits each. The
// second one is fit for a logarithm.
std::pair<double, double> TwoUniforms(const Rng& rng, uint64_t batch,
                                      uint32_t draw) {
  constexpr double kUnit = 0x1p-53;
  const Rng::Block bits = rng.Bits(batch, draw);
  const auto word = [&](int i) {
    return (static_cast<uint64_t>(bits[i + 1]) << 32 | bits[i]) >> 11;
  };
  return {static_cast<double>(word(0)) * kUnit,
          static_cast<double>(word(2) + 1) * kUnit};
}

double RandomReal(double low, double high, const Rng& rng, uint64_t batch,
                  uint32_t draw) {
  const auto [u, v] = TwoUniforms(rng, batch, draw);
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) {
    // Neither high - low nor either product overflows.
    return std::clamp(low * (1 - u) + high * u, low, high);
  }
  if (has_low) return low - std::log(v);
  if (has_high) return high + std::log(v);
  // Box and Muller.
  return std::sqrt(-2 * std::log(v)) * std::cos(2 * std::numbers::pi * u);
}

// Uniform in [low, high], also where that is all of int64.
int64_t RandomInt(int64_t low, int64_t high, const Rng& rng, uint64_t batch,
                  uint32_t draw) {
  const uint64_t span =
      static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t bits = rng.Bits64(batch, draw);
  // As BoundedInt, whose bound is below 2^63.
  const auto offset =
      static_cast<uint64_t>((static_cast<unsigned __int128>(bits) *
                             (static_cast<unsigned __int128>(span) + 1)) >>
                            64);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

template <typename T>
T RandomMember(const Range<T>& range, bool discrete, const Rng& rng,
               uint64_t batch, uint32_t draw) {
  if constexpr (kIsReal<T>) {
    // Rounding to T keeps the order, and the bounds are values of T.
    if (!discrete) {
      return FromDouble<T>(RandomReal(range.low, range.high, rng, batch, draw));
    }
  }
  return FromNumber<T>(RandomInt(static_cast<int64_t>(range.low),
                                 static_cast<int64_t>(range.high), rng, batch,
                                 draw));
}

}  // namespace

absl::Status CheckElements(absl::string_view key, const LeafSpec& spec,
                           const Limits& limits, const Tensor& host) {
  return DispatchArithmetic(
      spec.dtype, [&]<typename T>(TypeTag<T>) -> absl::Status {
        const Ranges<T> ranges(spec, limits);
        const bool discrete = limits.is_discrete;
        const int64_t elements = host.num_elements();
        for (int64_t i = 0; i < elements; ++i) {
          const T value = At<T>(host, i);
          const Range<T> range = ranges[i];
          if (IsMember(value, range, discrete)) continue;
          return Outside(
              key, ElementName(host, i), ElementText(value),
              absl::StrCat("a value in ",
                           spec.lows() == nullptr
                               ? DomainOf(spec).ToString(spec)
                               : absl::StrCat("[", ElementText(range.low), ", ",
                                              ElementText(range.high), "]")));
        }
        return absl::OkStatus();
      });
}

void FillRandom(const LeafSpec& spec, const Limits& limits, const Rng& rng,
                uint64_t batch, const Tensor& out) {
  DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
    const Ranges<T> ranges(spec, limits);
    const int64_t elements = out.num_elements();
    for (int64_t i = 0; i < elements; ++i) {
      out.data<T>()[i] = RandomMember<T>(ranges[i], limits.is_discrete, rng,
                                         batch, static_cast<uint32_t>(i));
    }
  });
}

void ElementDomain::Project(const LeafSpec& spec, const Shape&,
                            const Tensor& tensor) const {
  const Limits limits = LimitsOf(spec);
  const bool discrete = limits.is_discrete;
  DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
    const Ranges<T> ranges(spec, limits);
    T* const values = tensor.data<T>();
    const int64_t elements = tensor.num_elements();
    for (int64_t i = 0; i < elements; ++i) {
      values[i] = Clamped<T>(values[i], ranges[i], discrete);
    }
  });
}

std::optional<std::vector<Digit>> ElementDomain::Digits(
    const LeafSpec& spec) const {
  using Result = std::optional<std::vector<Digit>>;
  const Limits limits = LimitsOf(spec);
  return DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) -> Result {
    // Real numbers have too many members to list.
    if (kIsReal<T> && !limits.is_discrete) return {};
    const Ranges<T> ranges(spec, limits);
    std::vector<Digit> digits;
    for (int64_t i = 0; i < spec.shape.num_elements(); ++i) {
      const auto low = static_cast<int64_t>(ranges[i].low);
      const auto high = static_cast<int64_t>(ranges[i].high);
      // Unsigned, since high - low may exceed int64.
      const uint64_t span =
          static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
      // The count is span + 1; where that is 2^64 it stays 2^64 - 1, which
      // LeafSpec::Cardinality refuses as well.
      digits.push_back({.low = low, .count = span + (span != ~uint64_t{0})});
    }
    return digits;
  });
}

}  // namespace rill::tensor_internal
