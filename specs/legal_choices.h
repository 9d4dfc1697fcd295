// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_LEGAL_CHOICES_H_
#define RILL_SPECS_LEGAL_CHOICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A leaf of choices (LeafSpec) whose legal options are data: a mask in a leaf
// of its own says them for each lane. A mask of the spec (LeafSpec::WithMask)
// holds beside it.
//
// Shapes: values [lanes] + spec.shape. The mask is bool, not 0 where an option
//   is legal, [lanes] + LegalMaskShape(spec). Both contiguous in host memory.
// Errors: FAILED_PRECONDITION names the first lane and choice without a legal
//   option: the mask is at fault, as it is before the first reset.
//   INVALID_ARGUMENT where mask or values have another layout.
// Thread-safety: immutable.
// Cost: O(options); no allocation but of messages.
struct LegalChoices {
  absl::string_view key;       // Of the leaf, and
  absl::string_view mask_key;  // of its mask: for messages.
  const LeafSpec& spec;
  const Tensor& mask;

  // INVALID_ARGUMENT names the first lane whose option is not legal; where some
  // option would be, this has precedence.
  absl::Status Check(absl::string_view caller, const Tensor& values) const;

  // Uniform over the legal options, drawn as LeafSpec::Random draws under a
  // mask: choice i is a function of (rng, batch, i) and of its legal options.
  absl::Status Random(absl::string_view caller, const Rng& rng, uint64_t batch,
                      const Tensor& out) const;

  // Adds the log-probabilities of what Random draws. Each of `sums`, [lanes,
  // parts], gets those of an equal part of a lane's choices, in order: `parts`
  // divides their number.
  absl::Status AddLogProbs(absl::string_view caller, int64_t parts,
                           absl::Span<double> sums) const;
};

// The layout of a lane's mask: the options of a row of choices in the last
// dimension, and the other dimensions of the leaf before it. Categorical(n) of
// shape [2] gives [2, n]; OneHot its own shape; MultiCategorical the sum of
// nvec in place of the last size. INVALID_ARGUMENT for domains without choices.
absl::StatusOr<Shape> LegalMaskShape(const LeafSpec& spec);

}  // namespace rill

#endif  // RILL_SPECS_LEGAL_CHOICES_H_
