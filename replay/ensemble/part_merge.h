// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_PART_MERGE_H_
#define RILL_REPLAY_ENSEMBLE_PART_MERGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// Which member of an ensemble a row came from.
inline constexpr absl::string_view kBufferIdsKey = "buffer_ids";

// The part of a batch that one member gives.
struct BatchPart {
  int64_t member = 0;
  std::string label = "";  // "member 1 \"run\"": in errors.
  TensorDict* rows = nullptr;
};

// Puts parts (at least one) one behind the other, or `stacked` on a dimension
// of their own, and adds `buffer_ids`. The last dimension is named "time" where
// it is so in all, else "rows". Where some have `priority_weight` or
// `collector/mask` the others' are 1 and true. Reuses the tensors of `out`
// where they fit. INVALID_ARGUMENT names two members and the key where leaves
// differ, or one that has `buffer_ids` of its own. The parts are as before.
absl::Status MergeParts(absl::Span<const BatchPart> parts, bool stacked,
                        TensorDict* out);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ENSEMBLE_PART_MERGE_H_
