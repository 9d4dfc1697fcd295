// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_CHOICES_H_
#define RILL_TENSORDICT_CHOICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

// Leaves that are made of choices (see LeafSpec), for the .cc files of this
// package.
namespace rill::tensordict_internal {

// Categorical, OneHot and their Multi forms.
bool HasChoices(LeafSpec::Domain domain);
bool IsOneHot(LeafSpec::Domain domain);
// A row of choices is the last dimension.
bool HasRowDim(LeafSpec::Domain domain);

// Options of each choice of a row.
absl::Span<const int64_t> ChoiceSizes(const LeafSpec& spec);
// Their sum, which a checked domain keeps in int64.
int64_t NumOptions(const LeafSpec& spec);
// The trailing shape without the row's dimension.
Shape LeadOf(const LeafSpec& spec);
// A trailing shape of another lead.
Shape ShapeWithLead(const LeafSpec& spec, const Shape& lead);

// Whether the mask, if any, is for batches of this shape. INVALID_ARGUMENT.
absl::Status CheckMaskFits(const LeafSpec& spec, const Shape& batch_shape);

// The rows of a tensor of batch_shape + spec.shape, and the mask of each. The
// spec's domain is checked, has choices and outlives this.
// Thread-safety: immutable.
class Choices {
 public:
  Choices(const LeafSpec& spec, const Shape& batch_shape);

  bool one_hot() const { return one_hot_; }
  int64_t rows() const { return rows_; }
  absl::Span<const int64_t> sizes() const { return sizes_; }
  // Elements of a row.
  int64_t row_width() const { return row_width_; }
  // A bool for each option of the row; null where all are allowed.
  const bool* Mask(int64_t row) const;

 private:
  absl::Span<const int64_t> sizes_;
  bool one_hot_;
  int64_t rows_;
  int64_t row_width_;
  int64_t options_;
  const Tensor* mask_;
  Shape lead_;  // Of the batch and the spec.
};

}  // namespace rill::tensordict_internal

#endif  // RILL_TENSORDICT_CHOICES_H_
