// SPDX-License-Identifier: Apache-2.0
// LeafSpec: one leaf's domain.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_range.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using tensordict_internal::AsDouble;
using tensordict_internal::DispatchDType;
using tensordict_internal::ElementText;
using tensordict_internal::IsDiscrete;
using tensordict_internal::kHasArithmetic;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;
using tensordict_internal::Range;
using tensordict_internal::RangeOf;

template <typename T>
bool IsMember(T value, const Range<T>& range, bool discrete) {
  if constexpr (kIsReal<T>) {
    const double number = AsDouble(value);
    // Not the other way round: NaN is no member.
    return number >= range.low && number <= range.high &&
           (!discrete || number == std::floor(number));
  } else {
    const auto number = static_cast<int64_t>(value);
    return number >= range.low && number <= range.high;
  }
}

std::string DomainText(const LeafSpec& spec) {
  switch (spec.domain) {
    case LeafSpec::Domain::kUnbounded:
      return "";
    case LeafSpec::Domain::kBounded:
      return absl::StrCat("[", ElementText(spec.low), ", ",
                          ElementText(spec.high), "]");
    case LeafSpec::Domain::kCategorical:
      return absl::StrCat("{0, ..., ", spec.num_categories - 1, "}");
    case LeafSpec::Domain::kBinary:
      return "{0, 1}";
  }
  return "";
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

absl::Status LeafSpec::CheckDomain() const {
  if (domain == Domain::kUnbounded) return absl::OkStatus();
  if (!tensordict_internal::HasArithmetic(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: got ", DTypeName(dtype),
                     ", want one with arithmetic for a domain"));
  }
  if (domain == Domain::kBounded && !(low <= high)) {
    return absl::InvalidArgumentError(
        absl::StrCat("bounds: got [", low, ", ", high, "], want low <= high"));
  }
  if (domain == Domain::kCategorical && num_categories < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "number of categories: got ", num_categories, ", want at least 1"));
  }
  const bool has_all = DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasArithmetic<T>) {
      const Range<T> range = RangeOf<T>(*this);
      if (domain == Domain::kCategorical) {
        return range.high == static_cast<double>(num_categories - 1);
      }
      return range.low <= range.high;
    } else {
      return false;
    }
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
  return Shape::Create(batch_shape.Concat(shape).sizes());
}

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
  if (domain == Domain::kUnbounded) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckDomain());
  RILL_ASSIGN_OR_RETURN(Tensor host, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(host, host.Contiguous());
  return DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasArithmetic<T>) {
      const Range<T> range = RangeOf<T>(*this);
      for (int64_t i = 0; i < host.num_elements(); ++i) {
        const T value = LoadElement<T>(host.raw_data() + i * sizeof(T));
        if (IsMember(value, range, IsDiscrete(domain))) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("\"", key, "\": element ", i, " (row-major) of shape ",
                         host.shape().ToString(), ": got ", ElementText(value),
                         ", want a value in ", DomainText(*this)));
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Tensor> LeafSpec::Zero(const Shape& batch_shape) const {
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape(batch_shape));
  return Tensor::Zeros(dtype, full);
}

std::string LeafSpec::ToString() const {
  const std::string layout = absl::StrCat(DTypeName(dtype), shape.ToString());
  if (domain == Domain::kUnbounded) return layout;
  return absl::StrCat(layout, " in ", DomainText(*this));
}

}  // namespace rill
