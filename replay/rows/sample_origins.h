// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_SAMPLE_ORIGINS_H_
#define RILL_REPLAY_ROWS_SAMPLE_ORIGINS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// The leaves that a sample has beside the rows' own.
inline constexpr absl::string_view kIndexKey = "index";
inline constexpr absl::string_view kGenerationKey = "index_generation";
inline constexpr absl::string_view kWeightKey = "priority_weight";
inline constexpr absl::string_view kMaskKey = "collector/mask";

// Leaves of a batch by which its rows are known, kept while transforms work on
// it. If they drop one from a batch that still has its shape it is put back,
// where the batch lies.
// Thread-safety: thread-compatible. Cost: O(keys) look-ups.
class Origins {
 public:
  static constexpr size_t kMaxKeys = 4;

  // Those of `keys`, kMaxKeys at most, that the batch has; `keys` outlives
  // this.
  Origins(absl::Span<const absl::string_view> keys, const TensorDict& batch);
  absl::Status PutBack(TensorDict* batch) const;

 private:
  const absl::Span<const absl::string_view> keys_;
  const Shape shape_;
  std::array<Tensor, kMaxKeys> leaves_;
};

// An int64 leaf as contiguous host numbers, whatever its shape and place.
// NOT_FOUND, INVALID_ARGUMENT with another dtype; errors name `caller`.
absl::StatusOr<Tensor> NumbersOf(absl::string_view caller,
                                 const TensorDict& batch,
                                 absl::string_view key);

// Slots and generations of the rows of a sample, in its order.
// INVALID_ARGUMENT where the two leaves differ in size.
absl::StatusOr<std::vector<Draw>> DrawsOf(absl::string_view caller,
                                          const TensorDict& sample);

// The draws of the anchors of a sample of sequences (SequenceMarks), one a
// sequence, in its order. Empty where the sample has no `sequence_id` or no
// `anchor_index`, and where a transform took an anchor's row away. `draws` is
// DrawsOf(sample). INVALID_ARGUMENT where one of the two is no int64 leaf.
// Cost: O(rows).
absl::StatusOr<std::vector<Draw>> AnchorsOf(absl::string_view caller,
                                            const TensorDict& sample,
                                            absl::Span<const Draw> draws);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_SAMPLE_ORIGINS_H_
