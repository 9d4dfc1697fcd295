// SPDX-License-Identifier: Apache-2.0
// LeafSpec: how many members, and all of them. They are counted like numbers:
// each choice or element is a digit with values of its own, and the last digit
// changes fastest.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
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
using tensordict_internal::FromInt;
using tensordict_internal::HasChoices;
using tensordict_internal::IsDiscrete;
using tensordict_internal::IsOneHot;
using tensordict_internal::kIsReal;
using tensordict_internal::Ranges;

// The values that one choice or element goes through: low, low + 1, ...; of
// masked choices those that the mask allows.
struct Digit {
  int64_t low = 0;
  uint64_t count = 0;  // 2^64, the whole of int64, counts as 2^64 - 1.
  const bool* mask = nullptr;
  int64_t n = 0;  // Elements of a one-hot group.
};

std::vector<Digit> DigitsOfChoices(const Choices& choices) {
  std::vector<Digit> digits;
  for (int64_t row = 0; row < choices.rows(); ++row) {
    const bool* mask = choices.Mask(row);
    for (const int64_t n : choices.sizes()) {
      const int64_t count =
          mask == nullptr ? n : std::count(mask, mask + n, true);
      digits.push_back({0, static_cast<uint64_t>(count), mask, n});
      if (mask != nullptr) mask += n;
    }
  }
  return digits;
}

// Nothing where there are infinitely many members.
std::optional<std::vector<Digit>> DigitsOf(const LeafSpec& spec) {
  if (!spec.CheckDomain().ok() || !spec.FullShape({}).ok()) return {};
  if (HasChoices(spec.domain)) {
    if (!CheckMaskFits(spec, {}).ok()) return {};
    return DigitsOfChoices(Choices(spec, {}));
  }
  return DispatchArithmetic(
      spec.dtype, [&](auto tag) -> std::optional<std::vector<Digit>> {
        using T = typename decltype(tag)::type;
        // Real numbers have too many members to list.
        if (kIsReal<T> && !IsDiscrete(spec.domain)) return {};
        const Ranges<T> ranges(spec);
        std::vector<Digit> digits;
        for (int64_t i = 0; i < spec.shape.num_elements(); ++i) {
          const auto low = static_cast<int64_t>(ranges[i].low);
          const auto high = static_cast<int64_t>(ranges[i].high);
          // Unsigned, since high - low may exceed int64.
          const uint64_t span =
              static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
          // The count is span + 1; where that is 2^64 it stays 2^64 - 1, which
          // Product refuses as well.
          digits.push_back({low, span + (span != ~uint64_t{0}), nullptr, 0});
        }
        return digits;
      });
}

// Nothing where the number of members does not fit in int64.
std::optional<int64_t> Product(const std::vector<Digit>& digits) {
  int64_t product = 1;
  for (const Digit& digit : digits) {
    if (digit.count > static_cast<uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(product, static_cast<int64_t>(digit.count),
                               &product)) {
      return std::nullopt;
    }
  }
  return product;
}

bool IsAllowed(const Digit& digit, int64_t value) {
  return digit.mask == nullptr || digit.mask[value];
}

int64_t First(const Digit& digit) {
  int64_t value = digit.low;
  while (!IsAllowed(digit, value)) ++value;
  return value;
}

// Sets the next larger value of the digit. Past the last: sets the first, and
// false, so that the digit before moves on.
bool Advance(const Digit& digit, int64_t* value) {
  const int64_t last = digit.mask == nullptr
                           ? digit.low + (static_cast<int64_t>(digit.count) - 1)
                           : digit.n - 1;
  while (*value < last) {
    if (IsAllowed(digit, ++*value)) return true;
  }
  *value = First(digit);
  return false;
}

}  // namespace

std::optional<int64_t> LeafSpec::Cardinality() const {
  // Digits are a list: a large shape would take memory only to find an
  // overflow.
  constexpr int64_t kMaxElements = 1 << 20;
  if (shape.num_elements() > kMaxElements) return std::nullopt;
  const std::optional<std::vector<Digit>> digits = DigitsOf(*this);
  return digits.has_value() ? Product(*digits) : std::nullopt;
}

absl::StatusOr<Tensor> LeafSpec::Enumerate(int64_t max_members) const {
  const std::optional<int64_t> members = Cardinality();
  if (!members.has_value() || *members > max_members) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LeafSpec::Enumerate: members of ", ToString(), ": got ",
        members.has_value() ? absl::StrCat(*members) : "no finite number",
        ", want at most ", max_members));
  }
  const std::vector<Digit> digits = *DigitsOf(*this);
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape({*members}));
  RILL_ASSIGN_OR_RETURN(Tensor all, Tensor::Empty(dtype, full));
  std::vector<int64_t> values;
  for (const Digit& digit : digits) {
    values.push_back(First(digit));
  }
  DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = all.data<T>();
    for (int64_t member = 0; member < *members; ++member) {
      for (size_t d = 0; d < digits.size(); ++d) {
        if (IsOneHot(domain)) {
          std::fill_n(out, digits[d].n, FromInt<T>(0));
          out[values[d]] = FromInt<T>(1);
          out += digits[d].n;
        } else {
          *out++ = FromInt<T>(values[d]);
        }
      }
      // The carry: a digit that starts again moves the one before it.
      for (size_t d = digits.size(); d > 0; --d) {
        if (Advance(digits[d - 1], &values[d - 1])) break;
      }
    }
  });
  return all;
}

}  // namespace rill
