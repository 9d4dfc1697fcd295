// SPDX-License-Identifier: Apache-2.0
// LeafSpec::Categorical and MultiCategorical: an element is the index of an
// option.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/element_domain.h"

namespace rill {
namespace tensor_internal {
namespace {

// Outwards from `option`, the lower one first, so that of two equally near the
// lower one wins.
int64_t NearestAllowed(const Choices& choice, int64_t option) {
  for (int64_t away = 0;; ++away) {  // Every mask allows some option.
    const int64_t below = option - away;
    const int64_t above = option + away;
    if (below >= 0 && choice.Allows(below)) return below;
    if (above < choice.n() && choice.Allows(above)) return above;
  }
}

class Categorical final : public ChoiceDomain {
 public:
  std::string ToString(const LeafSpec& spec) const override {
    const bool is_multi = spec.domain == LeafSpec::Domain::kMultiCategorical;
    const auto options = [&](std::string* out, int64_t n) {
      absl::StrAppend(out, is_multi && n == 1
                               ? "{0}"
                               : absl::StrCat("{0, ..., ", n - 1, "}"));
    };
    return absl::StrCat(absl::StrJoin(ChoiceSizes(spec), " x ", options),
                        spec.mask() == nullptr ? "" : " masked");
  }

  absl::Status CheckValues(absl::string_view key, const LeafSpec& spec,
                           const Shape& batch_shape,
                           const Tensor& tensor) const override {
    // The plain loop serves where all elements have the same options.
    if (spec.domain == LeafSpec::Domain::kCategorical &&
        spec.mask() == nullptr) {
      return CheckElements(key, spec, OptionLimits(spec.num_categories - 1),
                           tensor);
    }
    return DispatchArithmetic(
        spec.dtype, [&]<typename T>(TypeTag<T>) -> absl::Status {
          for (Choices choice(spec, batch_shape); !choice.done();
               choice.Next()) {
            const T value = At<T>(tensor, choice.element());
            const int64_t most = choice.n() - 1;
            if (!IsMember(value, RangeOf<T>(OptionLimits(most)), true)) {
              return Outside(key, ElementName(tensor, choice.element()),
                             ElementText(value),
                             absl::StrCat("a value in {0, ..., ", most, "}"));
            }
            const auto option = static_cast<int64_t>(NumberOf(value));
            if (!choice.Allows(option)) {
              return NotAllowed(key, spec, choice, option, tensor);
            }
          }
          return absl::OkStatus();
        });
  }

  void Project(const LeafSpec& spec, const Shape& batch_shape,
               const Tensor& tensor) const override {
    DispatchArithmetic(spec.dtype, [&]<typename T>(TypeTag<T>) {
      for (Choices choice(spec, batch_shape); !choice.done(); choice.Next()) {
        T& value = tensor.data<T>()[choice.element()];
        const T near =
            Clamped(value, RangeOf<T>(OptionLimits(choice.n() - 1)), true);
        value = FromNumber<T>(
            NearestAllowed(choice, static_cast<int64_t>(NumberOf(near))));
      }
    });
  }
};

constexpr Categorical kDomain;

}  // namespace

constinit const LeafDomain& kCategoricalDomain = kDomain;

}  // namespace tensor_internal

LeafSpec LeafSpec::Categorical(int64_t num_categories, DType dtype,
                               const Shape& shape) {
  return {.dtype = dtype,
          .shape = shape,
          .domain = Domain::kCategorical,
          .num_categories = num_categories};
}

LeafSpec LeafSpec::MultiCategorical(absl::Span<const int64_t> nvec, DType dtype,
                                    const Shape& lead) {
  return {.dtype = dtype,
          .shape = lead.Concat({static_cast<int64_t>(nvec.size())}),
          .domain = Domain::kMultiCategorical,
          .tables = tensor_internal::WithNvec(nvec)};
}

}  // namespace rill
