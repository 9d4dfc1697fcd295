// SPDX-License-Identifier: Apache-2.0
// LeafSpec::OneHot and MultiOneHot: each choice is a group of elements, a 1
// among 0.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/element_domain.h"

namespace rill {
namespace tensor_internal {
namespace {

// The option of a group; -1 where it has none, several, or a number other than
// 0 and 1.
template <typename T>
int64_t HotOption(const Tensor& host, const Choices& choice) {
  const int64_t n = choice.n();
  const int64_t first = choice.element();
  int64_t hot = -1;
  for (int64_t i = 0; i < n; ++i) {
    const auto number = NumberOf(At<T>(host, first + i));
    if (number == 0) continue;
    if (hot >= 0 || number != 1) return -1;
    hot = i;
  }
  return hot;
}

// At most 16 elements of a group, for a message.
template <typename T>
std::string GroupText(const Tensor& host, const Choices& choice) {
  constexpr int64_t kShown = 16;
  std::string text = "{";
  for (int64_t i = 0; i < std::min(choice.n(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    ElementText(At<T>(host, choice.element() + i)));
  }
  return absl::StrCat(text, choice.n() > kShown ? ", ...}" : "}");
}

// The place of the largest element that the mask allows: what a network's
// scores choose. The first of equals; NaN is less than any number.
template <typename T>
int64_t LargestAllowed(const Choices& choice, const T* group) {
  const auto exceeds = [](T a, T b) {
    if constexpr (kIsReal<T>) {
      const double x = AsDouble(a);
      const double y = AsDouble(b);
      return x > y || (std::isnan(y) && !std::isnan(x));
    } else {
      return a > b;
    }
  };
  int64_t best = -1;
  for (int64_t i = 0; i < choice.n(); ++i) {
    if (!choice.Allows(i)) continue;
    if (best < 0 || exceeds(group[i], group[best])) best = i;
  }
  return best;
}

// One option a choice; elements are 0 but for the option's.
template <typename T>
absl::Status FillOneHot(Choices choice, const Numbers& numbers,
                        const Tensor& out) {
  T* const elements = out.data<T>();
  std::fill_n(elements, out.num_elements(), FromNumber<T>(0));
  for (size_t i = 0; !choice.done(); choice.Next(), ++i) {
    const int64_t option = numbers.AsWhole(i).value_or(-1);
    if (option < 0 || option >= choice.n() || !choice.Allows(option)) {
      return numbers.Refuse(
          i, absl::StrCat("an option in {0, ..., ", choice.n() - 1, "}",
                          choice.mask() ? " that the mask allows" : ""));
    }
    elements[choice.element() + option] = FromNumber<T>(1);
  }
  return absl::OkStatus();
}

class OneHot final : public ChoiceDomain {
 public:
  std::string ToString(const LeafSpec& spec) const override {
    return absl::StrCat("one-hot(", absl::StrJoin(ChoiceSizes(spec), ", "), ")",
                        spec.mask() == nullptr ? "" : " masked");
  }

  absl::Status CheckValues(absl::string_view key, const LeafSpec& spec,
                           const Shape& batch_shape,
                           const Tensor& tensor) const override {
    return DispatchArithmetic(
        spec.dtype, [&]<typename T>(TypeTag<T>) -> absl::Status {
          for (Choices choice(spec, batch_shape); !choice.done();
               choice.Next()) {
            const int64_t option = HotOption<T>(tensor, choice);
            if (option < 0) {
              return Outside(
                  key,
                  absl::StrCat("from ", ElementName(tensor, choice.element())),
                  GroupText<T>(tensor, choice), "one 1 among zeros");
            }
            if (!choice.Allows(option)) {
              return NotAllowed(key, spec, choice, option, tensor);
            }
          }
          return absl::OkStatus();
        });
  }

  // The group is read whole before it is cleared.
  void Project(const LeafSpec& spec, const Shape& batch_shape,
               const Tensor& tensor) const override {
    DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
      for (Choices choice(spec, batch_shape); !choice.done(); choice.Next()) {
        T* const group = tensor.data<T>() + choice.element();
        const int64_t option = LargestAllowed(choice, group);
        std::fill_n(group, choice.n(), FromNumber<T>(0));
        group[option] = FromNumber<T>(1);
      }
    });
  }

  absl::Status Encode(const LeafSpec& spec, const Shape& batch_shape,
                      const Numbers& numbers,
                      const Tensor& out) const override {
    return DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
      return FillOneHot<T>(Choices(spec, batch_shape), numbers, out);
    });
  }
};

constexpr OneHot kDomain;

}  // namespace

constinit const LeafDomain& kOneHotDomain = kDomain;

}  // namespace tensor_internal

LeafSpec LeafSpec::OneHot(int64_t num_categories, DType dtype,
                          const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({num_categories}),
          .domain = Domain::kOneHot,
          .num_categories = num_categories};
}

LeafSpec LeafSpec::MultiOneHot(absl::Span<const int64_t> nvec, DType dtype,
                               const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({tensor_internal::SumOf(nvec)}),
          .domain = Domain::kMultiOneHot,
          .tables = tensor_internal::WithNvec(nvec)};
}

}  // namespace rill
