// SPDX-License-Identifier: Apache-2.0
// LeafSpec: layouts and values against it.
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/choices.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill {
namespace {

using tensordict_internal::AsNumber;
using tensordict_internal::Choices;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::ElementText;
using tensordict_internal::HasChoices;
using tensordict_internal::IsDiscrete;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;
using tensordict_internal::Range;
using tensordict_internal::Ranges;

template <typename T>
T At(const Tensor& host, int64_t i) {
  return LoadElement<T>(host.raw_data() + i * static_cast<int64_t>(sizeof(T)));
}

absl::Status Outside(absl::string_view where, absl::string_view what,
                     absl::string_view got, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", what, ": got ", got, ", want ", want));
}

// "element 3 of [2, 4]".
std::string Element(const Tensor& host, int64_t i) {
  return absl::StrCat("element ", i, " of shape ", host.shape().ToString());
}

// In the range, and a whole number where the domain is `discrete`.
template <typename T>
bool IsMember(T value, const Range<T>& range, bool discrete) {
  const auto number = AsNumber(value);
  // Not the other way round: NaN is no member.
  if (!(number >= range.low && number <= range.high)) return false;
  if constexpr (kIsReal<T>) return !discrete || number == std::floor(number);
  return true;
}

// The domain's part of the spec's text.
std::string DomainOf(const LeafSpec& spec) {
  const std::string text = spec.ToString();
  return text.substr(text.find(" in ") + 4);
}

// Every element against its own range. Stops at the first that is outside.
template <typename T>
absl::Status CheckElements(absl::string_view where, const LeafSpec& spec,
                           const Tensor& host) {
  const Ranges<T> ranges(spec);
  const bool discrete = IsDiscrete(spec.domain);
  for (int64_t i = 0; i < host.num_elements(); ++i) {
    const T value = At<T>(host, i);
    const Range<T> range = ranges[i];
    if (IsMember(value, range, discrete)) continue;
    const std::string want =
        spec.lows() == nullptr ? DomainOf(spec)
                               : absl::StrCat("[", ElementText(range.low), ", ",
                                              ElementText(range.high), "]");
    return Outside(where, Element(host, i), ElementText(value),
                   absl::StrCat("a value in ", want));
  }
  return absl::OkStatus();
}

// The option of a one-hot group; -1 where it has none, several, or a number
// other than 0 and 1.
template <typename T>
int64_t HotOption(const Tensor& host, int64_t begin, int64_t n) {
  int64_t hot = -1;
  for (int64_t i = 0; i < n; ++i) {
    const T value = At<T>(host, begin + i);
    if (IsMember<T>(value, {0, 0}, false)) continue;
    if (hot >= 0 || !IsMember<T>(value, {1, 1}, false)) return -1;
    hot = i;
  }
  return hot;
}

// At most 16 elements of a group, for a message.
template <typename T>
std::string GroupText(const Tensor& host, int64_t begin, int64_t n) {
  constexpr int64_t kShown = 16;
  std::string text = "{";
  for (int64_t i = 0; i < std::min(n, kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    ElementText(At<T>(host, begin + i)));
  }
  return absl::StrCat(text, n > kShown ? ", ...}" : "}");
}

// Choice by choice: the value is an option, and the row's mask allows it.
template <typename T>
absl::Status CheckChoices(absl::string_view where, const LeafSpec& spec,
                          const Choices& choices, const Tensor& host) {
  int64_t at = 0;
  for (int64_t row = 0; row < choices.rows(); ++row) {
    const bool* mask = choices.Mask(row);
    for (const int64_t n : choices.sizes()) {
      int64_t option = -1;
      if (choices.one_hot()) {
        option = HotOption<T>(host, at, n);
        if (option < 0) {
          return Outside(where, absl::StrCat("from ", Element(host, at)),
                         GroupText<T>(host, at, n), "one 1 among zeros");
        }
      } else {
        // A choice is one element; its range is that of its own number of
        // options.
        const T value = At<T>(host, at);
        const Range<T> range = {0,
                                static_cast<typename Range<T>::Number>(n - 1)};
        if (!IsMember(value, range, /*discrete=*/true)) {
          return Outside(where, Element(host, at), ElementText(value),
                         absl::StrCat("a value in {0, ..., ", n - 1, "}"));
        }
        option = static_cast<int64_t>(AsNumber(value));
      }
      if (mask != nullptr) {
        if (!mask[option]) {
          return Outside(
              where, Element(host, at), absl::StrCat("option ", option),
              absl::StrCat("one that the mask of ", DomainOf(spec), " allows"));
        }
        mask += n;
      }
      at += choices.one_hot() ? n : 1;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LeafSpec::CheckLayout(absl::string_view key,
                                   const Shape& batch_shape,
                                   const Tensor& tensor) const {
  if (tensor.dtype() == dtype &&
      tensor.rank() == batch_shape.rank() + shape.rank() &&
      tensor.shape().StartsWith(batch_shape) &&
      tensor.shape().Suffix(batch_shape.rank()) == shape) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\": got ", DTypeName(tensor.dtype()),
                   tensor.shape().ToString(), ", want ", DTypeName(dtype),
                   batch_shape.Concat(shape).ToString()));
}

absl::Status LeafSpec::CheckValues(absl::string_view key,
                                   const Shape& batch_shape,
                                   const Tensor& tensor) const {
  RILL_RETURN_IF_ERROR(CheckLayout(key, batch_shape, tensor));
  // Any value is a member, so that nothing is copied to the host.
  if (domain == Domain::kUnbounded) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckDomain());
  RILL_RETURN_IF_ERROR(tensordict_internal::CheckMaskFits(*this, batch_shape));
  RILL_ASSIGN_OR_RETURN(Tensor host, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(host, host.Contiguous());
  const std::string where = absl::StrCat("\"", key, "\"");
  return DispatchArithmetic(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // The plain loop serves categories too, where all are allowed.
    if (!HasChoices(domain) ||
        (domain == Domain::kCategorical && mask() == nullptr)) {
      return CheckElements<T>(where, *this, host);
    }
    return CheckChoices<T>(where, *this, Choices(*this, batch_shape), host);
  });
}

bool LeafSpec::Contains(const Tensor& tensor) const {
  const int batch_rank = tensor.rank() - shape.rank();
  return batch_rank >= 0 &&
         CheckValues("", tensor.shape().Prefix(batch_rank), tensor).ok();
}

}  // namespace rill
