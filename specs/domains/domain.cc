// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/domains/domain.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/domains/choice_domain.h"

namespace rill::tensor_internal {
namespace {

// Integers have to be whole and in range: a cast would wrap silently.
template <typename T>
absl::Status FillElements(const Numbers& numbers, T* out) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if constexpr (kIsReal<T>) {
      out[i] = FromDouble<T>(numbers.AsReal(i));
    } else {
      constexpr int64_t kLeast = std::numeric_limits<T>::min();
      constexpr int64_t kMost = std::numeric_limits<T>::max();
      const std::optional<int64_t> whole = numbers.AsWhole(i);
      if (!whole.has_value() || *whole < kLeast || *whole > kMost) {
        return numbers.Refuse(
            i, absl::StrCat("a whole number in ", kLeast, " .. ", kMost));
      }
      out[i] = static_cast<T>(*whole);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int64_t> Numbers::AsWhole(size_t i) const {
  if (reals.empty()) return ints[i];
  // The range is checked before the cast, which is undefined outside.
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(reals[i] >= -kTwoTo63 && reals[i] < kTwoTo63)) return std::nullopt;
  const auto whole = static_cast<int64_t>(reals[i]);
  if (static_cast<double>(whole) != reals[i]) return std::nullopt;
  return whole;
}

absl::Status Numbers::Refuse(size_t i, absl::string_view want) const {
  return InvalidArgument(
      "LeafSpec::Encode: value ", i, ": got ",
      reals.empty() ? ElementText(ints[i]) : ElementText(reals[i]), ", want ",
      want);
}

const LeafDomain& DomainOf(const LeafSpec& spec) {
  switch (spec.domain) {
    case LeafSpec::Domain::kUnbounded:
      break;
    case LeafSpec::Domain::kBounded:
      return kBoundedDomain;
    case LeafSpec::Domain::kBinary:
      return kBinaryDomain;
    case LeafSpec::Domain::kCategorical:
    case LeafSpec::Domain::kMultiCategorical:
      return kCategoricalDomain;
    case LeafSpec::Domain::kOneHot:
    case LeafSpec::Domain::kMultiOneHot:
      return kOneHotDomain;
  }
  return kUnboundedDomain;
}

absl::Status LeafDomain::Encode(const LeafSpec& spec, const Shape&,
                                const Numbers& numbers,
                                const Tensor& out) const {
  return DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
    return FillElements(numbers, out.data<T>());
  });
}

absl::StatusOr<std::vector<Tensor>> LeafDomain::Parts(const LeafSpec&,
                                                      const Shape&) const {
  return std::vector<Tensor>();
}

absl::Status CheckTables(const LeafSpec& spec) {
  if (spec.tables == nullptr) return absl::OkStatus();
  if (const Tensor* lows = spec.lows();
      lows != nullptr &&
      (spec.domain != LeafSpec::Domain::kBounded ||
       lows->dtype() != spec.dtype || lows->shape() != spec.shape)) {
    return InvalidArgument("bounds by element: got ", DTypeName(lows->dtype()),
                           lows->shape().ToString(), " for a leaf of ",
                           DTypeName(spec.dtype), spec.shape.ToString(),
                           ", want bounds of its dtype and shape");
  }
  const Tensor* mask = spec.mask();
  if (mask == nullptr) return absl::OkStatus();
  // The mask's dimensions before the last are aligned to the right with the
  // lead; the batch's, before these, are compared when a batch comes.
  const Shape lead = LeadOf(spec);
  const int last = mask->rank() - 1;
  const bool fits =
      HasChoices(spec.domain) && last >= 0 &&
      mask->shape()[last] == NumOptions(spec) &&
      ExpandsTo(
          mask->shape().Prefix(last).Suffix(std::max(last - lead.rank(), 0)),
          lead);
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "mask: got bool", mask->shape().ToString(), " for ",
      DTypeName(spec.dtype), spec.shape.ToString(),
      HasChoices(spec.domain)
          ? absl::StrCat(", want a last size of ", NumOptions(spec),
                         " behind sizes that are 1 or end [batch, ",
                         lead.ToString(), "]")
          : ", want none for a domain without choices");
}

absl::Status CannotHold(const LeafSpec& spec) {
  return InvalidArgument("domain: got ", DomainOf(spec).ToString(spec),
                         ", want one whose members ", DTypeName(spec.dtype),
                         " can hold");
}

absl::Status Outside(absl::string_view key, absl::string_view what,
                     absl::string_view got, absl::string_view want) {
  return InvalidArgument("\"", key, "\": ", what, ": got ", got, ", want ",
                         want);
}

std::string ElementName(const Tensor& tensor, int64_t i) {
  return absl::StrCat("element ", i, " of shape ", tensor.shape().ToString());
}

absl::StatusOr<Tensor> HostCopy(const Tensor& tensor) {
  return tensor.is_host() ? tensor.Clone() : tensor.To(Device::Cpu());
}

void NormaliseBools(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<bool>()[i] = LoadElement<bool>(tensor.raw_data() + i);
  }
}

}  // namespace rill::tensor_internal
