// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/domains/choice_domain.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/random_blocks.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/domains/element_domain.h"
#include "rill/tensors/element.h"

namespace rill {
namespace tensor_internal {
namespace {

// At least one choice, each of at least one option, and a row as long as they
// need.
absl::Status CheckChoices(const LeafSpec& spec) {
  const absl::Span<const int64_t> sizes = ChoiceSizes(spec);
  if (sizes.empty()) {
    return InvalidArgument("number of choices: got 0, want some");
  }
  for (const int64_t n : sizes) {
    if (n < 1) {
      return InvalidArgument("number of categories: got ", n,
                             ", want at least 1");
    }
  }
  if (SumOf(sizes) < 1) {
    return InvalidArgument(
        "number of categories: want a sum that fits in int64");
  }
  if (!HasRowDim(spec.domain)) return absl::OkStatus();
  const int64_t width = IsOneHot(spec.domain)
                            ? NumOptions(spec)
                            : static_cast<int64_t>(sizes.size());
  const int rank = spec.shape.rank();
  if (rank > 0 && spec.shape[rank - 1] == width) return absl::OkStatus();
  return InvalidArgument("shape: got ", spec.shape.ToString(),
                         ", want a last size of ", width, " for ",
                         DomainOf(spec).ToString(spec));
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

// Each choice of each row of the mask allows an option: else drawing a member
// would not end.
absl::Status CheckAllowsSome(const LeafSpec& spec, const Tensor& mask) {
  const int64_t options = NumOptions(spec);
  const bool* at = mask.data<bool>();
  for (int64_t row = 0; row < mask.num_elements() / options; ++row) {
    int64_t choice = 0;
    for (const int64_t n : ChoiceSizes(spec)) {
      if (std::find(at, at + n, true) == at + n) {
        return InvalidArgument(
            "LeafSpec::WithMask: choice ", choice, " of row ", row,
            " of the mask: got no allowed option, want at least one");
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

// The same choices, one-hot or not, with the mask.
absl::StatusOr<LeafSpec> ConvertedSpec(absl::string_view caller,
                                       const LeafSpec& from, bool one_hot,
                                       DType dtype) {
  RILL_RETURN_IF_ERROR(from.CheckDomain());
  if (!HasChoices(from.domain) || IsOneHot(from.domain) == one_hot) {
    return InvalidArgument(
        caller, ": got ", from.ToString(), ", want ",
        one_hot ? "Categorical or MultiCategorical" : "OneHot or MultiOneHot");
  }
  if (one_hot) {  // One dimension more.
    RILL_RETURN_IF_ERROR(from.FullShape({1}).status());
  }
  const Shape lead = LeadOf(from);
  LeafSpec to;
  if (from.nvec().empty()) {
    to = one_hot ? LeafSpec::OneHot(from.num_categories, dtype, lead)
                 : LeafSpec::Categorical(from.num_categories, dtype, lead);
  } else {
    to = one_hot ? LeafSpec::MultiOneHot(from.nvec(), dtype, lead)
                 : LeafSpec::MultiCategorical(from.nvec(), dtype, lead);
  }
  RILL_RETURN_IF_ERROR(to.CheckDomain());
  return from.mask() == nullptr ? to : to.WithMask(*from.mask());
}

// Decodes options of `from` and encodes them as `to`, whose choices are the
// same.
absl::StatusOr<Tensor> Converted(absl::string_view caller, const LeafSpec& from,
                                 const LeafSpec& to, const Tensor& tensor) {
  const Shape batch_shape =
      tensor.shape().Prefix(std::max(tensor.rank() - from.shape.rank(), 0));
  RILL_ASSIGN_OR_RETURN(Tensor host, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(host, host.Contiguous());
  RILL_RETURN_IF_ERROR(from.CheckValues(caller, batch_shape, host));
  std::vector<int64_t> options;
  Choices choice(from, batch_shape);
  DispatchArithmetic(from.dtype, [&]<typename T>(TypeTag<T>) {
    for (; !choice.done(); choice.Next()) {
      int64_t option = 0;
      if (choice.one_hot()) {
        while (NumberOf(At<T>(host, choice.element() + option)) == 0) ++option;
      } else {
        option = static_cast<int64_t>(NumberOf(At<T>(host, choice.element())));
      }
      options.push_back(option);
    }
  });
  RILL_ASSIGN_OR_RETURN(Tensor result, to.EncodeInts(options, batch_shape));
  return result.To(tensor.device());
}

}  // namespace

absl::Span<const int64_t> ChoiceSizes(const LeafSpec& spec) {
  if (spec.domain == LeafSpec::Domain::kCategorical ||
      spec.domain == LeafSpec::Domain::kOneHot) {
    return absl::MakeConstSpan(&spec.num_categories, 1);
  }
  return spec.nvec();
}

int64_t NumOptions(const LeafSpec& spec) {
  const absl::Span<const int64_t> sizes = ChoiceSizes(spec);
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

Shape LeadOf(const LeafSpec& spec) {
  if (!HasRowDim(spec.domain)) return spec.shape;
  return spec.shape.Prefix(std::max(spec.shape.rank() - 1, 0));
}

Shape ShapeWithLead(const LeafSpec& spec, const Shape& lead) {
  if (!HasRowDim(spec.domain)) return lead;
  return lead.Concat(spec.shape.Suffix(spec.shape.rank() - 1));
}

bool ExpandsTo(const Shape& shape, const Shape& to) {
  const int more = to.rank() - shape.rank();
  if (more < 0) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1 && shape[d] != to[more + d]) return false;
  }
  return true;
}

absl::Status CheckMaskFits(const LeafSpec& spec, const Shape& batch_shape) {
  if (spec.mask() == nullptr) return absl::OkStatus();
  const Shape& mask = spec.mask()->shape();
  if (ExpandsTo(mask.Prefix(mask.rank() - 1),
                batch_shape.Concat(LeadOf(spec)))) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "mask of shape ", mask.ToString(), ": got batch shape ",
      batch_shape.ToString(), ", want one where the mask's shape without its ",
      "last size ends [batch shape, ", LeadOf(spec).ToString(), "]");
}

const bool* MaskOfRow(const LeafSpec& spec, const Shape& batch_shape,
                      int64_t row) {
  // Aligned to the right; sizes of 1 repeat. `row` is taken apart from the last
  // dimension on, as a number is into digits.
  const Shape& shape = spec.mask()->shape();
  const int batch = batch_shape.rank();
  int64_t at = 0;
  int64_t stride = shape[shape.rank() - 1];
  // `of` is the dimension of batch and lead that dimension d of the mask is.
  int of = batch + spec.shape.rank() - (HasRowDim(spec.domain) ? 2 : 1);
  for (int d = shape.rank() - 2; d >= 0; --d, --of) {
    const int64_t size = of < batch ? batch_shape[of] : spec.shape[of - batch];
    if (shape[d] != 1) at += row % size * stride;
    row /= size;
    stride *= shape[d];
  }
  return spec.mask()->data<bool>() + at;
}

absl::Status ChoiceDomain::CheckDomain(const LeafSpec& spec) const {
  RILL_RETURN_IF_ERROR(CheckChoices(spec));
  RILL_RETURN_IF_ERROR(CheckTables(spec));
  // An option of a one-hot domain is a place and no value.
  if (IsOneHot(spec.domain)) return absl::OkStatus();
  const absl::Span<const int64_t> sizes = ChoiceSizes(spec);
  const int64_t most = *std::max_element(sizes.begin(), sizes.end()) - 1;
  const bool has_all = DispatchArithmetic(
      spec.dtype,
      [&]<typename T>(TypeTag<T>) { return HoldsIndices<T>(most); });
  return has_all ? absl::OkStatus() : CannotHold(spec);
}

// One draw a choice, in order.
void ChoiceDomain::Random(const LeafSpec& spec, const Shape& batch_shape,
                          const Rng& rng, uint64_t batch,
                          const Tensor& out) const {
  DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
    Choices choice(spec, batch_shape);
    BitsInOrder bits(rng, batch, choice.size());
    T* at = out.data<T>();
    if (choice.one_hot()) std::fill_n(at, out.num_elements(), FromNumber<T>(0));
    for (; !choice.done(); choice.Next()) {
      const int64_t n = choice.n();
      const int64_t option = RandomOption(n, choice.mask(), bits.Next());
      if (choice.one_hot()) {
        at[option] = FromNumber<T>(1);
        at += n;
      } else {
        *at++ = FromNumber<T>(option);
      }
    }
  });
}

std::optional<std::vector<Digit>> ChoiceDomain::Digits(
    const LeafSpec& spec) const {
  const Shape batch_shape;
  if (!CheckMaskFits(spec, batch_shape).ok()) return std::nullopt;
  std::vector<Digit> digits;
  for (Choices choice(spec, batch_shape); !choice.done(); choice.Next()) {
    Digit digit = {.count = static_cast<uint64_t>(choice.n()),
                   .group = choice.one_hot() ? choice.n() : 0};
    for (int64_t i = 0; choice.mask() != nullptr && i < choice.n(); ++i) {
      if (choice.Allows(i)) digit.allowed.push_back(i);
    }
    if (!digit.allowed.empty()) digit.count = digit.allowed.size();
    digits.push_back(std::move(digit));
  }
  return digits;
}

// A strided view of the mask, or of one that allows everything.
absl::StatusOr<std::vector<Tensor>> ChoiceDomain::Parts(
    const LeafSpec& spec, const Shape& batch_shape) const {
  const int64_t options = NumOptions(spec);
  RILL_ASSIGN_OR_RETURN(
      const Shape whole,
      Shape::Create(
          batch_shape.Concat(LeadOf(spec)).Concat({options}).sizes()));
  Tensor mask;
  if (spec.mask() != nullptr) {
    mask = *spec.mask();
  } else {
    RILL_ASSIGN_OR_RETURN(mask, Tensor::Empty(DType::kBool, {options}));
    std::fill_n(mask.data<bool>(), options, true);
  }
  RILL_ASSIGN_OR_RETURN(mask, mask.Expand(whole));
  return std::vector{mask};
}

std::shared_ptr<const LeafSpec::Tables> WithNvec(
    absl::Span<const int64_t> nvec) {
  auto tables = std::make_shared<LeafSpec::Tables>();
  tables->nvec.assign(nvec.begin(), nvec.end());
  return tables;
}

int64_t SumOf(absl::Span<const int64_t> sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (__builtin_add_overflow(sum, size, &sum)) return 0;
  }
  return sum;
}

absl::Status NotAllowed(absl::string_view key, const LeafSpec& spec,
                        const Choices& choice, int64_t option,
                        const Tensor& tensor) {
  return Outside(key, ElementName(tensor, choice.element()),
                 absl::StrCat("option ", option),
                 absl::StrCat("one that the mask of ",
                              DomainOf(spec).ToString(spec), " allows"));
}

}  // namespace tensor_internal

absl::StatusOr<LeafSpec> LeafSpec::WithMask(const Tensor& mask) const {
  RILL_RETURN_IF_ERROR(CheckDomain());
  if (mask.dtype() != DType::kBool) {
    return InvalidArgument("LeafSpec::WithMask: mask: got ",
                           DTypeName(mask.dtype()), mask.shape().ToString(),
                           ", want bool");
  }
  // An own copy of bytes that are 0 or 1, as later comparisons look at bits.
  RILL_ASSIGN_OR_RETURN(Tensor own, tensor_internal::HostCopy(mask));
  tensor_internal::NormaliseBools(own);
  const bool* const bools = own.data<bool>();
  const bool allows_all = std::find(bools, bools + own.num_elements(), false) ==
                          bools + own.num_elements();
  RILL_ASSIGN_OR_RETURN(own, tensor_internal::WithoutRepeats(own));
  LeafSpec spec = *this;
  auto changed = std::make_shared<Tables>();
  // The other tables stay; the spec's are shared and never changed.
  if (tables != nullptr) *changed = *tables;
  changed->mask = own;
  spec.tables = std::move(changed);
  RILL_RETURN_IF_ERROR(tensor_internal::CheckTables(spec))
      << "in LeafSpec::WithMask";
  RILL_RETURN_IF_ERROR(tensor_internal::CheckAllowsSome(spec, own));
  // A mask that allows everything says nothing: specs of the same members
  // compare equal.
  return allows_all ? WithoutMask() : spec;
}

LeafSpec LeafSpec::WithoutMask() const {
  if (mask() == nullptr) return *this;
  LeafSpec spec = *this;
  spec.tables = nvec().empty() ? nullptr : tensor_internal::WithNvec(nvec());
  return spec;
}

constexpr absl::string_view kToOneHot = "LeafSpec::ToOneHot";
constexpr absl::string_view kToCategorical = "LeafSpec::ToCategorical";

absl::StatusOr<LeafSpec> LeafSpec::ToOneHotSpec(DType to) const {
  return tensor_internal::ConvertedSpec(kToOneHot, *this, true, to);
}

absl::StatusOr<LeafSpec> LeafSpec::ToCategoricalSpec(DType to) const {
  return tensor_internal::ConvertedSpec(kToCategorical, *this, false, to);
}

absl::StatusOr<Tensor> LeafSpec::ToOneHot(const Tensor& categorical,
                                          DType to) const {
  RILL_ASSIGN_OR_RETURN(const LeafSpec spec, ToOneHotSpec(to));
  return tensor_internal::Converted(kToOneHot, *this, spec, categorical);
}

absl::StatusOr<Tensor> LeafSpec::ToCategorical(const Tensor& one_hot,
                                               DType to) const {
  RILL_ASSIGN_OR_RETURN(const LeafSpec spec, ToCategoricalSpec(to));
  return tensor_internal::Converted(kToCategorical, *this, spec, one_hot);
}

}  // namespace rill
