// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/legal_choices.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/element_domain.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"

namespace rill {
namespace {

using tensor_internal::Choices;
using tensor_internal::DispatchArithmetic;
using tensor_internal::FromNumber;
using tensor_internal::IsOneHot;
using tensor_internal::NumberOf;
using tensor_internal::TypeTag;

absl::Status CheckLayout(absl::string_view caller, absl::string_view key,
                         const Tensor& tensor, DType dtype,
                         const Shape& shape) {
  if (tensor.is_host() && tensor.is_contiguous() && tensor.dtype() == dtype &&
      tensor.shape() == shape) {
    return absl::OkStatus();
  }
  return InvalidArgument(caller, ": \"", key, "\": got ",
                         DTypeName(tensor.dtype()), tensor.shape().ToString(),
                         " on ", tensor.device().ToString(),
                         ", want contiguous ", DTypeName(dtype),
                         shape.ToString(), " in host memory");
}

// The choices of all lanes, in order, with their legal options.
class LegalWalk {
 public:
  // The layouts are checked; all arguments outlive this.
  LegalWalk(const LegalChoices& choices, const Shape& batch)
      : choice_(choices.spec, batch),
        per_lane_(batch[0] == 0 ? 1 : choice_.size() / batch[0]),
        mask_(choices.mask.raw_data()) {}

  bool done() const { return choice_.done(); }
  void Next() {
    mask_ += choice_.n();
    choice_.Next();
    ++number_;
  }

  const Choices& choice() const { return choice_; }
  int64_t number() const { return number_; }  // Of all choices.
  int64_t per_lane() const { return per_lane_; }
  bool IsLegal(int64_t option) const {
    return mask_[option] != std::byte{0} && choice_.Allows(option);
  }
  int64_t Count() const {
    int64_t count = 0;
    for (int64_t i = 0; i < choice_.n(); ++i) count += IsLegal(i) ? 1 : 0;
    return count;
  }
  // Legal option number `left`, of more.
  int64_t Option(int64_t left) const {
    int64_t option = 0;
    while (!IsLegal(option) || left-- > 0) ++option;
    return option;
  }

 private:
  Choices choice_;
  int64_t per_lane_;
  const std::byte* mask_;
  int64_t number_ = 0;
};

// The option of the choice at hand; -1 where the elements name none.
template <typename T>
int64_t OptionAt(const Choices& choice, const Tensor& values) {
  const auto number = [&](int64_t i) {
    return NumberOf(tensor_internal::At<T>(values, choice.element() + i));
  };
  if (!choice.one_hot()) {
    const auto index = number(0);
    // The comparisons are false for NaN.
    if (!(index >= 0 && index < choice.n())) return -1;
    const auto option = static_cast<int64_t>(index);
    return index == option ? option : -1;
  }
  int64_t found = -1;
  for (int64_t option = 0; option < choice.n(); ++option) {
    if (number(option) == 0) continue;
    if (found >= 0) return -1;
    found = option;
  }
  return found;
}

// "lane 1", and the choice where a lane has several.
std::string PlaceOf(const LegalWalk& walk) {
  std::string place = absl::StrCat("lane ", walk.number() / walk.per_lane());
  if (walk.per_lane() > 1) {
    absl::StrAppend(&place, ", choice ", walk.number() % walk.per_lane());
  }
  return place;
}

absl::Status NothingLegal(absl::string_view caller, const LegalChoices& choices,
                          const LegalWalk& walk) {
  return FailedPrecondition(
      caller, ": ", PlaceOf(walk), ": \"", choices.mask_key,
      "\" allows no option of \"", choices.key,
      "\", want one or more in each state; a lane that was never reset has "
      "none");
}

absl::Status CheckMask(absl::string_view caller, const LegalChoices& choices) {
  RILL_ASSIGN_OR_RETURN(const Shape row, LegalMaskShape(choices.spec));
  const Shape lanes = choices.mask.shape().Prefix(1);
  return CheckLayout(caller, choices.mask_key, choices.mask, DType::kBool,
                     lanes.Concat(row));
}

}  // namespace

absl::StatusOr<Shape> LegalMaskShape(const LeafSpec& spec) {
  if (!tensor_internal::HasChoices(spec.domain)) {
    return InvalidArgument("legal options: got ", spec.ToString(),
                           ", want choices: Categorical, OneHot, "
                           "MultiCategorical or MultiOneHot");
  }
  if (IsOneHot(spec.domain)) return spec.shape;
  return tensor_internal::LeadOf(spec).Concat(
      {tensor_internal::NumOptions(spec)});
}

absl::Status LegalChoices::Check(absl::string_view caller,
                                 const Tensor& values) const {
  RILL_RETURN_IF_ERROR(CheckMask(caller, *this));
  const Shape batch = {mask.shape()[0]};
  RILL_RETURN_IF_ERROR(
      CheckLayout(caller, key, values, spec.dtype, batch.Concat(spec.shape)));
  return DispatchArithmetic(
      spec.dtype, [&]<typename T>(TypeTag<T>) -> absl::Status {
        absl::Status nothing_legal;
        for (LegalWalk walk(*this, batch); !walk.done(); walk.Next()) {
          const int64_t option = OptionAt<T>(walk.choice(), values);
          if (option >= 0 && walk.IsLegal(option)) continue;
          if (walk.Count() == 0) {
            nothing_legal.Update(NothingLegal(caller, *this, walk));
            continue;
          }
          return InvalidArgument(caller, ": ", PlaceOf(walk), ": \"", key,
                                 "\": got ",
                                 option < 0 ? std::string("no single option")
                                            : absl::StrCat("option ", option),
                                 ", want one that \"", mask_key,
                                 "\" allows, say ", walk.Option(0));
        }
        return nothing_legal;
      });
}

absl::Status LegalChoices::Random(absl::string_view caller, const Rng& rng,
                                  uint64_t batch_number,
                                  const Tensor& out) const {
  RILL_RETURN_IF_ERROR(CheckMask(caller, *this));
  const Shape batch = {mask.shape()[0]};
  RILL_RETURN_IF_ERROR(
      CheckLayout(caller, key, out, spec.dtype, batch.Concat(spec.shape)));
  return DispatchArithmetic(
      spec.dtype, [&]<typename T>(TypeTag<T>) -> absl::Status {
        T* const to = out.data<T>();
        for (LegalWalk walk(*this, batch); !walk.done(); walk.Next()) {
          const int64_t count = walk.Count();
          if (count == 0) return NothingLegal(caller, *this, walk);
          const int64_t option = walk.Option(rng.UniformInt(
              batch_number, static_cast<uint32_t>(walk.number()), count));
          const Choices& choice = walk.choice();
          if (!choice.one_hot()) {
            to[choice.element()] = FromNumber<T>(option);
            continue;
          }
          std::fill_n(to + choice.element(), choice.n(), FromNumber<T>(0));
          to[choice.element() + option] = FromNumber<T>(1);
        }
        return absl::OkStatus();
      });
}

absl::Status LegalChoices::AddLogProbs(absl::string_view caller, int64_t parts,
                                       absl::Span<double> sums) const {
  RILL_RETURN_IF_ERROR(CheckMask(caller, *this));
  const Shape batch = {mask.shape()[0]};
  LegalWalk walk(*this, batch);
  if (parts < 1 || walk.per_lane() % parts != 0 ||
      static_cast<int64_t>(sums.size()) != batch[0] * parts) {
    return InvalidArgument(caller, ": \"", key, "\": got ", parts, " parts of ",
                           walk.per_lane(), " choices and ", sums.size(),
                           " sums, want parts that divide them");
  }
  const int64_t width = walk.per_lane() / parts;  // Choices of a part.
  for (; !walk.done(); walk.Next()) {
    const int64_t count = walk.Count();
    if (count == 0) return NothingLegal(caller, *this, walk);
    sums[static_cast<size_t>(walk.number() / width)] -=
        std::log(static_cast<double>(count));
  }
  return absl::OkStatus();
}

}  // namespace rill
