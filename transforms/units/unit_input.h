// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_UNIT_INPUT_H_
#define RILL_TRANSFORMS_UNITS_UNIT_INPUT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::transforms_internal {

// How unit transforms look at what they are handed. `caller`
// ("NStepReturns::Apply") starts the messages.
// Thread-safety: thread-compatible.

// Rows of the batch that the plan makes.
int64_t NumRows(const SamplePlan& plan);

// The draw that a row of the batch belongs to.
inline int64_t DrawOf(const SamplePlan& plan, int64_t row) {
  return plan.rows.empty() ? row : plan.segments[static_cast<size_t>(row)];
}

// INTERNAL unless there are `num_lists` lists of context, and all lists of the
// plan are whole. A whole list has a segment a row, ascending, of the draws,
// and a mask value a row or none.
absl::Status CheckLists(absl::string_view caller, const SamplePlan& plan,
                        size_t num_lists);
// The same, and the dictionaries have the rows of the lists; those of context
// may have more behind, and `rows` too where that is said.
absl::Status CheckInput(absl::string_view caller, const SamplePlan& plan,
                        size_t num_lists, const TensorDict& rows,
                        absl::Span<const TensorDict> context,
                        const TensorDict& batch,
                        bool may_have_more_rows = false);

// INTERNAL unless every draw is one row of the batch.
absl::Status CheckOneRowADraw(absl::string_view caller, const SamplePlan& plan);

// Below the dictionary "next".
bool IsNext(absl::string_view key);

// INVALID_ARGUMENT where the rows have a leaf that the transform adds.
absl::Status CheckIsNew(absl::string_view caller, absl::string_view key,
                        const TensorDictSpec& rows);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_UNIT_INPUT_H_
