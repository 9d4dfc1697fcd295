// SPDX-License-Identifier: Apache-2.0
// LeafSpec: what does not depend on the domain. The factories are with the
// domains, in domains/.
#include "rill/specs/leaf_spec.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/domain.h"
#include "rill/specs/domains/element_domain.h"
#include "rill/tensors/element.h"

namespace rill {
namespace {

using tensor_internal::CheckMaskFits;
using tensor_internal::ChoiceSizes;
using tensor_internal::Digit;
using tensor_internal::DomainOf;
using tensor_internal::FromNumber;
using tensor_internal::TypeTag;

// Both null, or of the same bits.
bool SameTensor(const Tensor* a, const Tensor* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b || *a->BitEquals(*b);
}

// The batch shape that the tensor shows; empty where its rank is too low.
Shape BatchOf(const LeafSpec& spec, const Tensor& tensor) {
  return tensor.shape().Prefix(std::max(tensor.rank() - spec.shape.rank(), 0));
}

// Values can be made: the dtype has arithmetic, and the mask is for the batch.
absl::Status CheckCanMake(absl::string_view caller, const LeafSpec& spec,
                          const Shape& batch_shape) {
  if (!tensor_internal::HasArithmetic(spec.dtype)) {
    return InvalidArgument(caller, ": dtype: got ", DTypeName(spec.dtype),
                           ", want one with arithmetic");
  }
  RILL_RETURN_IF_ERROR(CheckMaskFits(spec, batch_shape)) << "in " << caller;
  return absl::OkStatus();
}

bool CanHold(const Tensor& tensor, DType dtype, const Shape& shape) {
  return tensor.dtype() == dtype && tensor.shape() == shape &&
         tensor.is_host() && tensor.is_writable() && tensor.is_contiguous();
}

// The result is checked against the spec at the end, which finds values outside
// of bounds.
absl::StatusOr<Tensor> EncodeAll(const LeafSpec& spec,
                                 const tensor_internal::Numbers& numbers,
                                 const Shape& batch_shape) {
  RILL_RETURN_IF_ERROR(spec.CheckDomain()) << "in LeafSpec::Encode";
  RILL_RETURN_IF_ERROR(CheckCanMake("LeafSpec::Encode", spec, batch_shape));
  RILL_ASSIGN_OR_RETURN(const Shape full, spec.FullShape(batch_shape));
  const bool one_hot = tensor_internal::IsOneHot(spec.domain);
  const int64_t want = one_hot
                           ? tensor_internal::Choices(spec, batch_shape).size()
                           : full.num_elements();
  if (static_cast<int64_t>(numbers.size()) != want) {
    return InvalidArgument(
        "LeafSpec::Encode: number of values: got ", numbers.size(), ", want ",
        want, one_hot ? ", an option each choice" : ", a value each element",
        " of ", full.ToString());
  }
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(spec.dtype, full));
  RILL_RETURN_IF_ERROR(
      DomainOf(spec).Encode(spec, batch_shape, numbers, tensor));
  RILL_RETURN_IF_ERROR(
      spec.CheckValues("LeafSpec::Encode", batch_shape, tensor));
  return tensor;
}

// Nothing where there are infinitely many members.
std::optional<std::vector<Digit>> DigitsOf(const LeafSpec& spec) {
  if (!spec.CheckDomain().ok() || !spec.FullShape({}).ok()) return {};
  return DomainOf(spec).Digits(spec);
}

// Members are counted like numbers: each choice or element is a digit with
// values of its own, and the last digit changes fastest.
template <typename T>
void FillMembers(const std::vector<Digit>& digits, int64_t members, T* out) {
  std::vector<uint64_t> at(digits.size());  // The values' numbers.
  for (int64_t member = 0; member < members; ++member) {
    for (size_t d = 0; d < digits.size(); ++d) {
      const Digit& digit = digits[d];
      const int64_t value = digit.allowed.empty()
                                ? digit.low + static_cast<int64_t>(at[d])
                                : digit.allowed[at[d]];
      if (digit.group > 0) {
        std::fill_n(out, digit.group, FromNumber<T>(0));
        out[value] = FromNumber<T>(1);
        out += digit.group;
      } else {
        *out++ = FromNumber<T>(value);
      }
    }
    // The carry: a digit that starts again moves the one before it.
    for (size_t d = digits.size(); d > 0 && ++at[d - 1] == digits[d - 1].count;
         --d) {
      at[d - 1] = 0;
    }
  }
}

}  // namespace

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
  if (domain != Domain::kUnbounded && !tensor_internal::HasArithmetic(dtype)) {
    return InvalidArgument("dtype: got ", DTypeName(dtype),
                           ", want one with arithmetic for a domain");
  }
  return DomainOf(*this).CheckDomain(*this);
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
  return InvalidArgument("\"", key, "\": got ", DTypeName(tensor.dtype()),
                         tensor.shape().ToString(), ", want ", DTypeName(dtype),
                         batch_shape.Concat(shape).ToString());
}

absl::Status LeafSpec::CheckValues(absl::string_view key,
                                   const Shape& batch_shape,
                                   const Tensor& tensor) const {
  RILL_RETURN_IF_ERROR(CheckLayout(key, batch_shape, tensor));
  // Any value is a member, so that nothing is copied to the host.
  if (domain == Domain::kUnbounded) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CheckDomain());
  RILL_RETURN_IF_ERROR(CheckMaskFits(*this, batch_shape));
  RILL_ASSIGN_OR_RETURN(Tensor host, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(host, host.Contiguous());
  return DomainOf(*this).CheckValues(key, *this, batch_shape, host);
}

bool LeafSpec::Contains(const Tensor& tensor) const {
  return tensor.rank() >= shape.rank() &&
         CheckValues("", BatchOf(*this, tensor), tensor).ok();
}

absl::StatusOr<Shape> LeafSpec::FullShape(const Shape& batch_shape) const {
  const int rank = batch_shape.rank() + shape.rank();
  if (rank > Shape::kMaxRank) {
    return InvalidArgument("rank of batch shape ", batch_shape.ToString(),
                           " and shape ", shape.ToString(), " joined: got ",
                           rank, ", want at most ", Shape::kMaxRank);
  }
  // Create refuses products that overflow.
  return Shape::Create(batch_shape.Concat(shape).sizes());
}

absl::Status LeafSpec::RandomInto(const Shape& batch_shape, const Rng& rng,
                                  uint64_t batch, Tensor* out) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  RILL_RETURN_IF_ERROR(CheckCanMake("LeafSpec::Random", *this, batch_shape));
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape(batch_shape));
  // A draw's number has 32 bits.
  constexpr int64_t kMaxDraws = int64_t{1} << 32;
  if (full.num_elements() > kMaxDraws) {
    return InvalidArgument("LeafSpec::Random: number of elements of shape ",
                           full.ToString(), ": got ", full.num_elements(),
                           ", want at most ", kMaxDraws);
  }
  // The tensor is used again where it fits, so that a loop allocates nothing.
  if (!CanHold(*out, dtype, full)) {
    RILL_ASSIGN_OR_RETURN(*out, Tensor::Empty(dtype, full));
  }
  DomainOf(*this).Random(*this, batch_shape, rng, batch, *out);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> LeafSpec::Random(const Shape& batch_shape,
                                        const Rng& rng, uint64_t batch) const {
  Tensor tensor;
  RILL_RETURN_IF_ERROR(RandomInto(batch_shape, rng, batch, &tensor));
  return tensor;
}

absl::StatusOr<Tensor> LeafSpec::Zero(const Shape& batch_shape) const {
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape(batch_shape));
  return Tensor::Zeros(dtype, full);
}

absl::StatusOr<Tensor> LeafSpec::One(const Shape& batch_shape) const {
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape(batch_shape));
  RILL_ASSIGN_OR_RETURN(const Tensor ones, Tensor::Empty(dtype, full));
  tensor_internal::DispatchDType(dtype, [&]<typename T>(TypeTag<T>) {
    std::fill_n(ones.data<T>(), full.num_elements(),
                tensor_internal::FromDouble<T>(1));
  });
  return ones;
}

absl::StatusOr<Tensor> LeafSpec::Project(const Tensor& tensor) const {
  constexpr absl::string_view kCaller = "LeafSpec::Project";
  RILL_RETURN_IF_ERROR(CheckDomain()) << "in " << kCaller;
  const Shape batch_shape = BatchOf(*this, tensor);
  RILL_RETURN_IF_ERROR(CheckLayout(kCaller, batch_shape, tensor));
  RILL_RETURN_IF_ERROR(CheckMaskFits(*this, batch_shape)) << "in " << kCaller;
  // Always a copy: the caller's tensor stays.
  RILL_ASSIGN_OR_RETURN(Tensor host, tensor_internal::HostCopy(tensor));
  if (dtype == DType::kBool && domain != Domain::kUnbounded) {
    tensor_internal::NormaliseBools(host);
  }
  DomainOf(*this).Project(*this, batch_shape, host);
  return host.To(tensor.device());
}

absl::StatusOr<Tensor> LeafSpec::Encode(absl::Span<const double> values,
                                        const Shape& batch_shape) const {
  return EncodeAll(*this, {.reals = values}, batch_shape);
}

absl::StatusOr<Tensor> LeafSpec::EncodeInts(absl::Span<const int64_t> values,
                                            const Shape& batch_shape) const {
  return EncodeAll(*this, {.ints = values}, batch_shape);
}

std::optional<int64_t> LeafSpec::Cardinality() const {
  // Digits are a list: a large shape would take memory only to find an
  // overflow.
  constexpr int64_t kMaxElements = 1 << 20;
  if (shape.num_elements() > kMaxElements) return std::nullopt;
  const std::optional<std::vector<Digit>> digits = DigitsOf(*this);
  if (!digits.has_value()) return std::nullopt;
  int64_t product = 1;
  for (const Digit& digit : *digits) {
    if (digit.count > static_cast<uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(product, static_cast<int64_t>(digit.count),
                               &product)) {
      return std::nullopt;
    }
  }
  return product;
}

absl::StatusOr<Tensor> LeafSpec::Enumerate(int64_t max_members) const {
  const std::optional<int64_t> members = Cardinality();
  if (!members.has_value() || *members > max_members) {
    return InvalidArgument(
        "LeafSpec::Enumerate: members of ", ToString(), ": got ",
        members.has_value() ? absl::StrCat(*members) : "no finite number",
        ", want at most ", max_members);
  }
  RILL_ASSIGN_OR_RETURN(const Shape full, FullShape({*members}));
  RILL_ASSIGN_OR_RETURN(Tensor all, Tensor::Empty(dtype, full));
  tensor_internal::DispatchArithmetic(dtype, [&]<typename T>(TypeTag<T>) {
    FillMembers(*DigitsOf(*this), *members, all.data<T>());
  });
  return all;
}

std::string LeafSpec::ToString() const {
  const std::string text = DomainOf(*this).ToString(*this);
  return absl::StrCat(DTypeName(dtype), shape.ToString(),
                      text.empty() ? "" : " in ", text);
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
  if (tensor_internal::HasChoices(a.domain) &&
      ChoiceSizes(a) != ChoiceSizes(b)) {
    return false;
  }
  return SameTensor(a.lows(), b.lows()) && SameTensor(a.highs(), b.highs()) &&
         SameTensor(a.mask(), b.mask());
}

}  // namespace rill
