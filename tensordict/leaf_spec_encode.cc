// SPDX-License-Identifier: Apache-2.0
// LeafSpec: values from numbers, and choices as one-hot and back.
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/choices.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill {
namespace {

using tensordict_internal::Choices;
using tensordict_internal::DispatchArithmetic;
using tensordict_internal::DispatchDType;
using tensordict_internal::ElementText;
using tensordict_internal::FromDouble;
using tensordict_internal::FromInt;
using tensordict_internal::HasChoices;
using tensordict_internal::IsOneHot;
using tensordict_internal::kIsReal;
using tensordict_internal::LeadOf;
using tensordict_internal::LoadElement;

// `value` as a whole number, if it is one of int64. The range is checked before
// the cast, which is undefined outside.
bool IsWhole(double value, int64_t* whole) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(value >= -kTwoTo63 && value < kTwoTo63)) return false;
  *whole = static_cast<int64_t>(value);
  return static_cast<double>(*whole) == value;
}
bool IsWhole(int64_t value, int64_t* whole) {
  *whole = value;
  return true;
}

absl::Status BadValue(int64_t i, absl::string_view got,
                      absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      "LeafSpec::Encode: value ", i, ": got ", got, ", want ", want));
}

// One value an element. Integers have to be whole and in range: a cast would
// wrap silently.
template <typename T, typename Value>
absl::Status FillElements(absl::Span<const Value> values, T* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (kIsReal<T>) {
      out[i] = FromDouble<T>(static_cast<double>(values[i]));
    } else {
      int64_t whole = 0;
      if (!IsWhole(values[i], &whole) ||
          whole < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
          whole > static_cast<int64_t>(std::numeric_limits<T>::max())) {
        return BadValue(static_cast<int64_t>(i), ElementText(values[i]),
                        absl::StrCat("a whole number in ",
                                     ElementText(static_cast<int64_t>(
                                         std::numeric_limits<T>::min())),
                                     " .. ",
                                     ElementText(static_cast<int64_t>(
                                         std::numeric_limits<T>::max()))));
      }
      out[i] = static_cast<T>(whole);
    }
  }
  return absl::OkStatus();
}

// One option a choice; elements are 0 but for the option's.
template <typename T, typename Value>
absl::Status FillOneHot(const Choices& choices, absl::Span<const Value> values,
                        T* out) {
  std::fill_n(out, choices.rows() * choices.row_width(), FromInt<T>(0));
  int64_t i = 0;
  for (int64_t row = 0; row < choices.rows(); ++row) {
    const bool* mask = choices.Mask(row);
    for (const int64_t n : choices.sizes()) {
      int64_t option = 0;
      if (!IsWhole(values[i], &option) || option < 0 || option >= n ||
          (mask != nullptr && !mask[option])) {
        return BadValue(i, ElementText(values[i]),
                        absl::StrCat("an option in {0, ..., ", n - 1, "}",
                                     mask ? " that the mask allows" : ""));
      }
      out[option] = FromInt<T>(1);
      out += n;
      if (mask != nullptr) mask += n;
      ++i;
    }
  }
  return absl::OkStatus();
}

// The values of Encode or EncodeInts. The result is checked against the spec
// at the end, which finds values outside of bounds for both. There are two
// types of values, since int64 above 2^53 would be rounded as double.
template <typename Value>
absl::StatusOr<Tensor> EncodeAll(const LeafSpec& spec,
                                 absl::Span<const Value> values,
                                 const Shape& batch_shape) {
  RILL_RETURN_IF_ERROR(spec.CheckDomain()) << "in LeafSpec::Encode";
  if (!tensordict_internal::HasArithmetic(spec.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::Encode: dtype: got ", DTypeName(spec.dtype),
                     ", want one with arithmetic"));
  }
  RILL_RETURN_IF_ERROR(tensordict_internal::CheckMaskFits(spec, batch_shape))
      << "in LeafSpec::Encode";
  RILL_ASSIGN_OR_RETURN(const Shape full, spec.FullShape(batch_shape));
  const bool one_hot = IsOneHot(spec.domain);
  int64_t want = full.num_elements();
  if (one_hot) {
    const Choices choices(spec, batch_shape);
    want = choices.rows() * static_cast<int64_t>(choices.sizes().size());
  }
  if (static_cast<int64_t>(values.size()) != want) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LeafSpec::Encode: number of values: got ", values.size(), ", want ",
        want, one_hot ? ", an option each choice" : ", a value each element",
        " of ", full.ToString()));
  }
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(spec.dtype, full));
  RILL_RETURN_IF_ERROR(DispatchArithmetic(spec.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return one_hot ? FillOneHot(Choices(spec, batch_shape), values,
                                tensor.data<T>())
                   : FillElements(values, tensor.data<T>());
  }));
  RILL_RETURN_IF_ERROR(
      spec.CheckValues("LeafSpec::Encode", batch_shape, tensor));
  return tensor;
}

// The batch shape of checked values on the host.
struct HostValues {
  Tensor tensor;
  Shape batch_shape;
};

// The host copy of `tensor`, whose values are members: OptionsOf relies on it.
absl::StatusOr<HostValues> CheckedValues(absl::string_view caller,
                                         const LeafSpec& spec,
                                         const Tensor& tensor) {
  HostValues values;
  values.batch_shape =
      tensor.shape().Prefix(std::max(tensor.rank() - spec.shape.rank(), 0));
  RILL_ASSIGN_OR_RETURN(values.tensor, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(values.tensor, values.tensor.Contiguous());
  RILL_RETURN_IF_ERROR(
      spec.CheckValues(caller, values.batch_shape, values.tensor));
  return values;
}

// Every option in order, of indices or one-hot elements that were checked.
template <typename T>
std::vector<int64_t> OptionsOf(const Choices& choices, const Tensor& tensor) {
  std::vector<int64_t> options;
  const std::byte* at = tensor.raw_data();
  const auto next = [&] {
    const T value = LoadElement<T>(at);
    at += sizeof(T);
    return static_cast<int64_t>(tensordict_internal::AsNumber(value));
  };
  for (int64_t row = 0; row < choices.rows(); ++row) {
    for (const int64_t n : choices.sizes()) {
      if (!choices.one_hot()) {
        options.push_back(next());
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        if (next() != 0) options.push_back(i);
      }
    }
  }
  return options;
}

// Decodes options of `from` and encodes them as `to`: both have the same
// choices.
absl::StatusOr<Tensor> Converted(absl::string_view caller, const LeafSpec& from,
                                 const LeafSpec& to, const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const HostValues values,
                        CheckedValues(caller, from, tensor));
  const Choices choices(from, values.batch_shape);
  const std::vector<int64_t> options =
      DispatchArithmetic(from.dtype, [&](auto tag) {
        return OptionsOf<typename decltype(tag)::type>(choices, values.tensor);
      });
  RILL_ASSIGN_OR_RETURN(Tensor result,
                        to.EncodeInts(options, values.batch_shape));
  return result.To(tensor.device());
}

// All elements 0 or 1, whether or not that is a member.
absl::StatusOr<Tensor> Filled(const LeafSpec& spec, const Shape& batch_shape,
                              int value) {
  RILL_ASSIGN_OR_RETURN(const Shape full, spec.FullShape(batch_shape));
  if (value == 0) return Tensor::Zeros(spec.dtype, full);
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(spec.dtype, full));
  DispatchDType(spec.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(tensor.data<T>(), full.num_elements(), FromDouble<T>(value));
  });
  return tensor;
}

// With the mask of `from`, whose options are the same.
absl::StatusOr<LeafSpec> MaskedLike(LeafSpec spec, const LeafSpec& from) {
  RILL_RETURN_IF_ERROR(spec.CheckDomain());
  if (from.mask() == nullptr) return spec;
  return spec.WithMask(*from.mask());
}

}  // namespace

absl::StatusOr<Tensor> LeafSpec::Zero(const Shape& batch_shape) const {
  return Filled(*this, batch_shape, 0);
}

absl::StatusOr<Tensor> LeafSpec::One(const Shape& batch_shape) const {
  return Filled(*this, batch_shape, 1);
}

absl::StatusOr<Tensor> LeafSpec::Encode(absl::Span<const double> values,
                                        const Shape& batch_shape) const {
  return EncodeAll(*this, values, batch_shape);
}

absl::StatusOr<Tensor> LeafSpec::EncodeInts(absl::Span<const int64_t> values,
                                            const Shape& batch_shape) const {
  return EncodeAll(*this, values, batch_shape);
}

absl::StatusOr<Tensor> LeafSpec::EncodeRows(
    absl::Span<const std::vector<double>> rows) const {
  std::vector<double> values;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "LeafSpec::EncodeRows: row ", i, ": got ", rows[i].size(),
          " values, want ", rows[0].size(), " as in row 0"));
    }
    values.insert(values.end(), rows[i].begin(), rows[i].end());
  }
  return Encode(values, {static_cast<int64_t>(rows.size())});
}

absl::StatusOr<LeafSpec> LeafSpec::ToOneHotSpec(DType to) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  if (!HasChoices(domain) || IsOneHot(domain)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::ToOneHot: got ", ToString(),
                     ", want Categorical or MultiCategorical"));
  }
  RILL_RETURN_IF_ERROR(FullShape({1}).status());  // One dimension more.
  return MaskedLike(domain == Domain::kCategorical
                        ? OneHot(num_categories, to, shape)
                        : MultiOneHot(nvec(), to, LeadOf(*this)),
                    *this);
}

absl::StatusOr<LeafSpec> LeafSpec::ToCategoricalSpec(DType to) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  if (!IsOneHot(domain)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LeafSpec::ToCategorical: got ", ToString(),
                     ", want OneHot or MultiOneHot"));
  }
  return MaskedLike(domain == Domain::kOneHot
                        ? Categorical(num_categories, to, LeadOf(*this))
                        : MultiCategorical(nvec(), to, LeadOf(*this)),
                    *this);
}

absl::StatusOr<Tensor> LeafSpec::ToOneHot(const Tensor& categorical,
                                          DType to) const {
  RILL_ASSIGN_OR_RETURN(const LeafSpec spec, ToOneHotSpec(to));
  return Converted("LeafSpec::ToOneHot", *this, spec, categorical);
}

absl::StatusOr<Tensor> LeafSpec::ToCategorical(const Tensor& one_hot,
                                               DType to) const {
  RILL_ASSIGN_OR_RETURN(const LeafSpec spec, ToCategoricalSpec(to));
  return Converted("LeafSpec::ToCategorical", *this, spec, one_hot);
}

}  // namespace rill
