// SPDX-License-Identifier: Apache-2.0
// LeafSpec's random members. Every element is a function of (rng, batch, number
// of the element). It does not depend on the order in which elements are drawn,
// or on how many there are behind it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/random_blocks.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/choices.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill {
namespace {

using tensordict_internal::CheckMaskFits;
using tensordict_internal::Choices;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::FromDouble;
using tensordict_internal::FromInt;
using tensordict_internal::HasChoices;
using tensordict_internal::IsDiscrete;
using tensordict_internal::kIsReal;
using tensordict_internal::Range;
using tensordict_internal::Ranges;

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

// Uniform between two bounds; behind one bound exponential with mean 1; without
// bounds standard normal (Box and Muller).
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
  return std::sqrt(-2 * std::log(v)) * std::cos(2 * std::numbers::pi * u);
}

// Uniform in [low, high], also where that is all of int64.
int64_t RandomInt(int64_t low, int64_t high, const Rng& rng, uint64_t batch,
                  uint32_t draw) {
  const uint64_t span =
      static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t bits = rng.Bits64(batch, draw);
  // BoundedInt takes bounds below 2^63; the wider ones use the same
  // multiplication and shift in 128 bits.
  const uint64_t offset =
      span < static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          ? static_cast<uint64_t>(
                BoundedInt(bits, static_cast<int64_t>(span) + 1))
          : static_cast<uint64_t>(
                (static_cast<unsigned __int128>(bits) *
                 (static_cast<unsigned __int128>(span) + 1)) >>
                64);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

template <typename T>
T RandomMember(const LeafSpec& spec, Range<T> range, const Rng& rng,
               uint64_t batch, uint32_t draw) {
  if constexpr (kIsReal<T>) {
    if (IsDiscrete(spec.domain)) {
      return FromInt<T>(RandomInt(static_cast<int64_t>(range.low),
                                  static_cast<int64_t>(range.high), rng, batch,
                                  draw));
    }
    // Rounding to T keeps the order, and the bounds are values of T.
    return FromDouble<T>(RandomReal(range.low, range.high, rng, batch, draw));
  } else {
    // Unbounded integers are drawn from [-100, 100], cut to the dtype.
    if (spec.domain == LeafSpec::Domain::kUnbounded) {
      constexpr int64_t kReach = 100;
      range.low = std::max(range.low, -kReach);
      range.high = std::min(range.high, kReach);
    }
    return static_cast<T>(RandomInt(range.low, range.high, rng, batch, draw));
  }
}

// Uniform over the options that `mask` allows: the left-th of them.
int64_t RandomOption(int64_t n, const bool* mask, uint64_t bits) {
  if (mask == nullptr) return BoundedInt(bits, n);
  int64_t left = BoundedInt(bits, std::count(mask, mask + n, true));
  int64_t option = 0;
  while (!mask[option] || left-- > 0) ++option;
  return option;
}

// rng.Bits64(batch, 0), then those of the next draws. Blocks are made 64 at a
// time: RandomBlocks works on many at once.
class BitsInOrder {
 public:
  BitsInOrder(const Rng& rng, uint64_t batch, int64_t draws)
      : rng_(rng), batch_(batch), left_(draws) {}

  uint64_t Next() {
    if (at_ == end_) Draw();
    return LowBits64(blocks_[at_++]);
  }

 private:
  void Draw() {
    // No more than are left: blocks past the last draw are not made.
    end_ = static_cast<size_t>(
        std::min(left_, static_cast<int64_t>(blocks_.size())));
    RandomBlocks(rng_, batch_, first_, absl::MakeSpan(blocks_.data(), end_));
    first_ += static_cast<uint32_t>(end_);
    left_ -= static_cast<int64_t>(end_);
    at_ = 0;
  }

  const Rng& rng_;
  const uint64_t batch_;
  int64_t left_;
  uint32_t first_ = 0;
  size_t at_ = 0;
  size_t end_ = 0;
  std::array<Rng::Block, 64> blocks_;
};

// One draw a choice, in order.
template <typename T>
void FillChoices(const Choices& choices, const Rng& rng, uint64_t batch,
                 T* out) {
  if (choices.one_hot()) {
    std::fill_n(out, choices.rows() * choices.row_width(), FromInt<T>(0));
  }
  BitsInOrder bits(
      rng, batch,
      choices.rows() * static_cast<int64_t>(choices.sizes().size()));
  for (int64_t row = 0; row < choices.rows(); ++row) {
    const bool* mask = choices.Mask(row);
    for (const int64_t n : choices.sizes()) {
      const int64_t option = RandomOption(n, mask, bits.Next());
      if (choices.one_hot()) {
        out[option] = FromInt<T>(1);
        out += n;
      } else {
        *out++ = FromInt<T>(option);
      }
      if (mask != nullptr) mask += n;
    }
  }
}

bool CanHold(const Tensor& tensor, DType dtype, const Shape& shape) {
  return tensor.dtype() == dtype && tensor.shape() == shape &&
         tensor.is_host() && tensor.is_writable() && tensor.is_contiguous();
}

}  // namespace

absl::Status LeafSpec::RandomInto(const Shape& batch_shape, const Rng& rng,
                                  uint64_t batch, Tensor* out) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  if (!tensordict_internal::HasArithmetic(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::Random: dtype: got ", DTypeName(dtype),
                     ", want one with arithmetic"));
  }
  RILL_RETURN_IF_ERROR(CheckMaskFits(*this, batch_shape))
      << "in LeafSpec::Random";
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape(batch_shape));
  // A draw's number has 32 bits.
  constexpr int64_t kMaxDraws = int64_t{1} << 32;
  if (full.num_elements() > kMaxDraws) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LeafSpec::Random: number of elements of shape ", full.ToString(),
        ": got ", full.num_elements(), ", want at most ", kMaxDraws));
  }
  // The tensor is used again where it fits, so that a loop allocates nothing.
  if (!CanHold(*out, dtype, full)) {
    RILL_ASSIGN_OR_RETURN(*out, Tensor::Empty(dtype, full));
  }
  DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (HasChoices(domain)) {
      return FillChoices<T>(Choices(*this, batch_shape), rng, batch,
                            out->data<T>());
    }
    const Ranges<T> ranges(*this);
    for (int64_t i = 0; i < full.num_elements(); ++i) {
      out->data<T>()[i] = RandomMember<T>(*this, ranges[i], rng, batch,
                                          static_cast<uint32_t>(i));
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Tensor> LeafSpec::Random(const Shape& batch_shape,
                                        const Rng& rng, uint64_t batch) const {
  Tensor tensor;
  RILL_RETURN_IF_ERROR(RandomInto(batch_shape, rng, batch, &tensor));
  return tensor;
}

}  // namespace rill
