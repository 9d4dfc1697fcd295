// SPDX-License-Identifier: Apache-2.0
// LeafSpec: making, domains, texts.
#include "rill/tensordict/leaf_spec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/choices.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"

namespace rill {
namespace {

using tensordict_internal::ChoiceSizes;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::ElementText;
using tensordict_internal::HasChoices;
using tensordict_internal::HasRowDim;
using tensordict_internal::HostCopy;
using tensordict_internal::IsOneHot;
using tensordict_internal::kIsReal;
using tensordict_internal::LeadOf;
using tensordict_internal::LoadElement;
using tensordict_internal::NumOptions;
using tensordict_internal::Range;
using tensordict_internal::RangeOf;

// The sum of sizes from outside, whatever they are; 0 where it does not fit in
// int64. CheckDomain refuses such sizes.
int64_t SumOf(absl::Span<const int64_t> sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (__builtin_add_overflow(sum, size, &sum)) return 0;
  }
  return sum;
}

std::shared_ptr<const LeafSpec::Tables> WithNvec(
    absl::Span<const int64_t> nvec) {
  auto tables = std::make_shared<LeafSpec::Tables>();
  tables->nvec.assign(nvec.begin(), nvec.end());
  return tables;
}

std::string OptionsText(int64_t n) {
  return n == 1 ? "{0}" : absl::StrCat("{0, ..., ", n - 1, "}");
}

std::string DomainText(const LeafSpec& spec) {
  const char* const masked = spec.mask() == nullptr ? "" : " masked";
  switch (spec.domain) {
    case LeafSpec::Domain::kUnbounded:
      return "";
    case LeafSpec::Domain::kBounded:
      return absl::StrCat("[", ElementText(spec.low), ", ",
                          ElementText(spec.high), "]",
                          spec.lows() == nullptr ? "" : " by element");
    case LeafSpec::Domain::kCategorical:
      return absl::StrCat("{0, ..., ", spec.num_categories - 1, "}", masked);
    case LeafSpec::Domain::kBinary:
      return "{0, 1}";
    case LeafSpec::Domain::kOneHot:
      return absl::StrCat("one-hot(", spec.num_categories, ")", masked);
    case LeafSpec::Domain::kMultiCategorical:
      return absl::StrCat(absl::StrJoin(spec.nvec(), " x ",
                                        [](std::string* out, int64_t n) {
                                          absl::StrAppend(out, OptionsText(n));
                                        }),
                          masked);
    case LeafSpec::Domain::kMultiOneHot:
      return absl::StrCat("one-hot(", absl::StrJoin(spec.nvec(), ", "), ")",
                          masked);
  }
  return "";
}

// Both null, or of the same bits.
bool SameTensor(const Tensor* a, const Tensor* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b || *a->BitEquals(*b);
}

// At least one choice, each of at least one option, and a row as long as they
// need.
absl::Status CheckChoices(const LeafSpec& spec) {
  const absl::Span<const int64_t> sizes = ChoiceSizes(spec);
  if (sizes.empty()) {
    return absl::InvalidArgumentError("number of choices: got 0, want some");
  }
  for (const int64_t n : sizes) {
    if (n < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("number of categories: got ", n, ", want at least 1"));
    }
  }
  if (SumOf(sizes) < 1) {
    return absl::InvalidArgumentError(
        "number of categories: want a sum that fits in int64");
  }
  if (!HasRowDim(spec.domain)) return absl::OkStatus();
  const int64_t width = IsOneHot(spec.domain)
                            ? NumOptions(spec)
                            : static_cast<int64_t>(sizes.size());
  const int rank = spec.shape.rank();
  if (rank > 0 && spec.shape[rank - 1] == width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shape: got ", spec.shape.ToString(),
                   ", want a last size of ", width, " for ", DomainText(spec)));
}

// Specs that no factory makes, but a change of the public members does.
absl::Status CheckTables(const LeafSpec& spec) {
  if (const Tensor* lows = spec.lows();
      lows != nullptr &&
      (spec.domain != LeafSpec::Domain::kBounded ||
       lows->dtype() != spec.dtype || lows->shape() != spec.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bounds by element: got ", DTypeName(lows->dtype()),
        lows->shape().ToString(), " for a leaf of ", DTypeName(spec.dtype),
        spec.shape.ToString(), ", want bounds of its dtype and shape"));
  }
  const Tensor* mask = spec.mask();
  if (mask == nullptr) return absl::OkStatus();
  const int rank = mask->rank();
  // The mask's dimensions before the last are aligned to the right with the
  // lead; the batch's, before these, are compared when a batch comes.
  const Shape lead = LeadOf(spec);
  bool fits = HasChoices(spec.domain) && rank > 0 &&
              mask->shape()[rank - 1] == NumOptions(spec);
  for (int d = 1; fits && d < rank && d <= lead.rank(); ++d) {
    const int64_t size = mask->shape()[rank - 1 - d];
    fits = size == 1 || size == lead[lead.rank() - d];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "mask: got bool", mask->shape().ToString(), " for ",
      DTypeName(spec.dtype), spec.shape.ToString(),
      HasChoices(spec.domain)
          ? absl::StrCat(", want a last size of ", NumOptions(spec),
                         " behind sizes that are 1 or end [batch, ",
                         lead.ToString(), "]")
          : ", want none for a domain without choices"));
}

// Each choice of each row of the mask allows an option: else drawing a member
// would not end.
absl::Status CheckAllowsSome(const LeafSpec& spec, const Tensor& mask) {
  const int64_t options = NumOptions(spec);
  const bool* at = mask.data<bool>();
  for (int64_t row = 0; row < mask.num_elements() / options; ++row) {
    int64_t choice = 0;
    for (const int64_t n : ChoiceSizes(spec)) {
      if (std::find(at, at + n, true) == at + n) {
        return absl::InvalidArgumentError(absl::StrCat(
            "LeafSpec::WithMask: choice ", choice, " of row ", row,
            " of the mask: got no allowed option, want at least one"));
      }
      ++choice;
      at += n;
    }
  }
  return absl::OkStatus();
}

// The mask with sizes of 1 where it repeats, and none of them at the front: one
// form for all masks that say the same.
absl::StatusOr<Tensor> WithoutRepeats(Tensor mask) {
  // Compared by bits with its own first slice repeated: O(elements) a
  // dimension, once when a spec is made.
  for (int d = 0; d < mask.rank() - 1; ++d) {
    if (mask.shape()[d] < 1) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor first, mask.Slice(d, 0, 1));
    RILL_ASSIGN_OR_RETURN(const Tensor repeated, first.Expand(mask.shape()));
    RILL_ASSIGN_OR_RETURN(const bool repeats, mask.BitEquals(repeated));
    if (repeats) mask = first;
  }
  while (mask.rank() > 1 && mask.shape()[0] == 1) {
    RILL_ASSIGN_OR_RETURN(mask, mask.Squeeze(0));
  }
  return mask.Clone();
}

// Whether T has 0 .. most without a gap: floats do up to 2^digits of their
// mantissa.
template <typename T>
bool HoldsIndices(int64_t most) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return most <= 1 << 8;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return most <= 1 << 11;
  } else if constexpr (kIsReal<T>) {
    return most <= int64_t{1} << std::numeric_limits<T>::digits;
  } else {
    return most <= static_cast<int64_t>(std::numeric_limits<T>::max());
  }
}

}  // namespace

LeafSpec LeafSpec::Unbounded(DType dtype, const Shape& shape) {
  return {.dtype = dtype, .shape = shape};
}

LeafSpec LeafSpec::Bounded(DType dtype, const Shape& shape, double low,
                           double high) {
  return {.dtype = dtype,
          .shape = shape,
          .domain = Domain::kBounded,
          .low = low,
          .high = high};
}

LeafSpec LeafSpec::Categorical(int64_t num_categories, DType dtype,
                               const Shape& shape) {
  return {.dtype = dtype,
          .shape = shape,
          .domain = Domain::kCategorical,
          .num_categories = num_categories};
}

LeafSpec LeafSpec::Binary(const Shape& shape, DType dtype) {
  return {.dtype = dtype, .shape = shape, .domain = Domain::kBinary};
}

LeafSpec LeafSpec::OneHot(int64_t num_categories, DType dtype,
                          const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({num_categories}),
          .domain = Domain::kOneHot,
          .num_categories = num_categories};
}

LeafSpec LeafSpec::MultiCategorical(absl::Span<const int64_t> nvec, DType dtype,
                                    const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({static_cast<int64_t>(nvec.size())}),
          .domain = Domain::kMultiCategorical,
          .tables = WithNvec(nvec)};
}

LeafSpec LeafSpec::MultiOneHot(absl::Span<const int64_t> nvec, DType dtype,
                               const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({SumOf(nvec)}),
          .domain = Domain::kMultiOneHot,
          .tables = WithNvec(nvec)};
}

absl::StatusOr<LeafSpec> LeafSpec::WithMask(const Tensor& mask) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  if (mask.dtype() != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::WithMask: mask: got ", DTypeName(mask.dtype()),
                     mask.shape().ToString(), ", want bool"));
  }
  // An own copy of bytes that are 0 or 1, as later comparisons look at bits.
  RILL_ASSIGN_OR_RETURN(Tensor own, HostCopy(mask));
  bool allows_all = true;
  for (int64_t i = 0; i < own.num_elements(); ++i) {
    const bool allowed = LoadElement<bool>(own.raw_data() + i);
    own.data<bool>()[i] = allowed;
    allows_all = allows_all && allowed;
  }
  RILL_ASSIGN_OR_RETURN(own, WithoutRepeats(own));
  LeafSpec spec = *this;
  auto changed = std::make_shared<Tables>();
  // The other tables stay; the spec's are shared and never changed.
  if (tables != nullptr) *changed = *tables;
  changed->mask = own;
  spec.tables = std::move(changed);
  RILL_RETURN_IF_ERROR(CheckTables(spec)) << "in LeafSpec::WithMask";
  RILL_RETURN_IF_ERROR(CheckAllowsSome(spec, own));
  // A mask that allows everything says nothing: specs of the same members
  // compare equal.
  return allows_all ? WithoutMask() : spec;
}

LeafSpec LeafSpec::WithoutMask() const {
  if (mask() == nullptr) return *this;
  LeafSpec spec = *this;
  spec.tables = tables->nvec.empty() ? nullptr : WithNvec(tables->nvec);
  return spec;
}

absl::Span<const int64_t> LeafSpec::nvec() const {
  if (tables == nullptr) return {};
  return tables->nvec;
}

const Tensor* LeafSpec::mask() const {
  return tables != nullptr && tables->mask.is_valid() ? &tables->mask : nullptr;
}

const Tensor* LeafSpec::lows() const {
  return tables != nullptr && tables->low.is_valid() ? &tables->low : nullptr;
}

const Tensor* LeafSpec::highs() const {
  return tables != nullptr && tables->low.is_valid() ? &tables->high : nullptr;
}

absl::Status LeafSpec::CheckDomain() const {
  if (domain == Domain::kUnbounded) return CheckTables(*this);
  if (!tensordict_internal::HasArithmetic(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: got ", DTypeName(dtype),
                     ", want one with arithmetic for a domain"));
  }
  if (domain == Domain::kBounded && !(low <= high)) {
    return absl::InvalidArgumentError(
        absl::StrCat("bounds: got [", low, ", ", high, "], want low <= high"));
  }
  if (HasChoices(domain)) {
    RILL_RETURN_IF_ERROR(CheckChoices(*this));
  }
  RILL_RETURN_IF_ERROR(CheckTables(*this));
  int64_t most = 0;  // The highest index of an option, where they are values.
  // An option of a one-hot domain is a place and no value, so `most` stays 0
  // there.
  if (HasChoices(domain) && !IsOneHot(domain)) {
    for (const int64_t n : ChoiceSizes(*this)) most = std::max(most, n - 1);
  }
  // The range cut to T is empty where T holds no member.
  const bool has_all = DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Range<T> range = RangeOf<T>(*this);
    return HoldsIndices<T>(most) && range.low <= range.high;
  });
  if (has_all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("domain: got ", DomainText(*this),
                   ", want one whose members ", DTypeName(dtype), " can hold"));
}

absl::StatusOr<Shape> LeafSpec::FullShape(const Shape& batch_shape) const {
  const int rank = batch_shape.rank() + shape.rank();
  if (rank > Shape::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank of batch shape ", batch_shape.ToString(),
                     " and shape ", shape.ToString(), " joined: got ", rank,
                     ", want at most ", Shape::kMaxRank));
  }
  // Create refuses products that overflow.
  return Shape::Create(batch_shape.Concat(shape).sizes());
}

std::string LeafSpec::ToString() const {
  const std::string layout = absl::StrCat(DTypeName(dtype), shape.ToString());
  if (domain == Domain::kUnbounded) return layout;
  return absl::StrCat(layout, " in ", DomainText(*this));
}

bool operator==(const LeafSpec& a, const LeafSpec& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.domain != b.domain) {
    return false;
  }
  // Bounds count only where the domain has them: the members are public and may
  // hold anything else.
  if (a.domain == LeafSpec::Domain::kBounded &&
      (a.low != b.low || a.high != b.high)) {
    return false;
  }
  if (HasChoices(a.domain) && ChoiceSizes(a) != ChoiceSizes(b)) return false;
  return SameTensor(a.lows(), b.lows()) && SameTensor(a.highs(), b.highs()) &&
         SameTensor(a.mask(), b.mask());
}

}  // namespace rill
