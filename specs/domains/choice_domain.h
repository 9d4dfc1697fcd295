// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_DOMAINS_CHOICE_DOMAIN_H_
#define RILL_SPECS_DOMAINS_CHOICE_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/specs/domains/domain.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// Domains of choices (see LeafSpec): Categorical, OneHot and their Multi forms.
namespace rill::tensor_internal {

constexpr bool IsOneHot(LeafSpec::Domain domain) {
  return domain == LeafSpec::Domain::kOneHot ||
         domain == LeafSpec::Domain::kMultiOneHot;
}
// A row of choices is the last dimension.
constexpr bool HasRowDim(LeafSpec::Domain domain) {
  return IsOneHot(domain) || domain == LeafSpec::Domain::kMultiCategorical;
}
// Categorical, OneHot and their Multi forms.
constexpr bool HasChoices(LeafSpec::Domain domain) {
  return domain == LeafSpec::Domain::kCategorical || HasRowDim(domain);
}

// Options of each choice of a row.
absl::Span<const int64_t> ChoiceSizes(const LeafSpec& spec);
// Their sum, which a checked domain keeps in int64.
int64_t NumOptions(const LeafSpec& spec);
// The trailing shape without the row's dimension.
Shape LeadOf(const LeafSpec& spec);
// A trailing shape of another lead.
Shape ShapeWithLead(const LeafSpec& spec, const Shape& lead);

// The sizes of `shape`, aligned to the right with those of `to`, are the same
// or 1, which repeats.
bool ExpandsTo(const Shape& shape, const Shape& to);
// INVALID_ARGUMENT unless the mask, if any, is for batches of this shape.
absl::Status CheckMaskFits(const LeafSpec& spec, const Shape& batch_shape);

// The mask of a row of batch_shape + lead, of a spec with a mask.
const bool* MaskOfRow(const LeafSpec& spec, const Shape& batch_shape,
                      int64_t row);

// Goes through the choices of a tensor of batch_shape + spec.shape, in order:
//   for (Choices choice(spec, batch_shape); !choice.done(); choice.Next())
// The spec's domain is checked and has choices; both arguments outlive this.
// All is inline and no address is kept, so that it can be in registers.
// Thread-safety: thread-compatible.
class Choices {
 public:
  Choices(const LeafSpec& spec, const Shape& batch_shape)
      : spec_(spec),
        batch_shape_(batch_shape),
        sizes_(ChoiceSizes(spec)),
        one_hot_(IsOneHot(spec.domain)),
        rows_(batch_shape.num_elements() * spec.shape.num_elements()) {
    if (HasRowDim(spec.domain)) rows_ /= spec.shape[spec.shape.rank() - 1];
    if (spec.mask() == nullptr || done()) return;
    mask_ = spec.mask()->data<bool>();
    has_mask_of_row_ = spec.mask()->rank() > 1;
    first_mask_ = mask_;
  }

  // Number of all choices.
  int64_t size() const { return rows_ * static_cast<int64_t>(sizes_.size()); }
  bool one_hot() const { return one_hot_; }

  bool done() const { return row_ == rows_; }
  void Next() {
    element_ += one_hot_ ? n() : 1;
    if (mask_ != nullptr) mask_ += n();
    if (++choice_ < sizes_.size()) return;
    choice_ = 0;
    if (++row_ == rows_) return;
    mask_ =
        has_mask_of_row_ ? MaskOfRow(spec_, batch_shape_, row_) : first_mask_;
  }

  // The present one: number of options, the first of its elements, and a bool
  // for each option, null where all are allowed.
  int64_t n() const { return sizes_[choice_]; }
  int64_t element() const { return element_; }
  const bool* mask() const { return mask_; }
  bool Allows(int64_t option) const {
    return mask_ == nullptr || mask_[option];
  }

 private:
  const LeafSpec& spec_;
  const Shape& batch_shape_;
  absl::Span<const int64_t> sizes_;
  bool one_hot_;
  bool has_mask_of_row_ = false;  // Rows differ in their masks.
  int64_t rows_;
  int64_t row_ = 0;
  size_t choice_ = 0;  // Of the row.
  int64_t element_ = 0;
  const bool* mask_ = nullptr;
  const bool* first_mask_ = nullptr;  // Of row 0, or of all rows.
};

class ChoiceDomain : public LeafDomain {
 public:
  absl::Status CheckDomain(const LeafSpec& spec) const override;
  void Random(const LeafSpec& spec, const Shape& batch_shape, const Rng& rng,
              uint64_t batch, const Tensor& out) const override;
  std::optional<std::vector<Digit>> Digits(const LeafSpec& spec) const override;
  absl::StatusOr<std::vector<Tensor>> Parts(
      const LeafSpec& spec, const Shape& batch_shape) const override;

 protected:
  ~ChoiceDomain() = default;
};

std::shared_ptr<const LeafSpec::Tables> WithNvec(
    absl::Span<const int64_t> nvec);
// The sum of sizes from outside, whatever they are; 0 where it does not fit in
// int64. CheckDomain refuses such sizes.
int64_t SumOf(absl::Span<const int64_t> sizes);
// The mask does not allow the option.
absl::Status NotAllowed(absl::string_view key, const LeafSpec& spec,
                        const Choices& choice, int64_t option,
                        const Tensor& tensor);

}  // namespace rill::tensor_internal

#endif  // RILL_SPECS_DOMAINS_CHOICE_DOMAIN_H_
