// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/choices.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace rill::tensordict_internal {

using Domain = LeafSpec::Domain;

bool HasChoices(Domain domain) {
  return domain == Domain::kCategorical || HasRowDim(domain);
}

bool IsOneHot(Domain domain) {
  return domain == Domain::kOneHot || domain == Domain::kMultiOneHot;
}

bool HasRowDim(Domain domain) {
  return IsOneHot(domain) || domain == Domain::kMultiCategorical;
}

absl::Span<const int64_t> ChoiceSizes(const LeafSpec& spec) {
  if (spec.domain == Domain::kCategorical || spec.domain == Domain::kOneHot) {
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

absl::Status CheckMaskFits(const LeafSpec& spec, const Shape& batch_shape) {
  if (spec.mask() == nullptr) return absl::OkStatus();
  const Shape lead = batch_shape.Concat(LeadOf(spec));
  const Shape& mask = spec.mask()->shape();
  // The mask is aligned to the right of batch shape + lead: `more` dimensions
  // come before it.
  const int more = lead.rank() - (mask.rank() - 1);
  bool fits = more >= 0;
  for (int d = 0; fits && d < mask.rank() - 1; ++d) {
    fits = mask[d] == 1 || mask[d] == lead[more + d];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "mask of shape ", mask.ToString(), ": got batch shape ",
      batch_shape.ToString(), ", want one where the mask's shape without its ",
      "last size ends [batch shape, ", LeadOf(spec).ToString(), "]"));
}

Choices::Choices(const LeafSpec& spec, const Shape& batch_shape)
    : sizes_(ChoiceSizes(spec)),
      one_hot_(IsOneHot(spec.domain)),
      options_(NumOptions(spec)),
      mask_(spec.mask()),
      lead_(batch_shape.Concat(LeadOf(spec))) {
  rows_ = lead_.num_elements();
  row_width_ = one_hot_ ? options_ : static_cast<int64_t>(sizes_.size());
}

const bool* Choices::Mask(int64_t row) const {
  if (mask_ == nullptr) return nullptr;
  // Aligned to the right; sizes of 1 repeat. `row` is taken apart from the last
  // dimension on, as a number is into digits.
  const Shape& shape = mask_->shape();
  int64_t at = 0;
  int64_t stride = options_;
  // `of` is the dimension of the lead that dimension d of the mask is.
  for (int d = shape.rank() - 2, of = lead_.rank() - 1; d >= 0; --d, --of) {
    if (shape[d] != 1) at += row % lead_[of] * stride;
    row /= lead_[of];
    stride *= shape[d];
  }
  return mask_->data<bool>() + at;
}

}  // namespace rill::tensordict_internal
