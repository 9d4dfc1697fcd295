// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_PART_ROWS_H_
#define RILL_DISTRIBUTED_KILLS_PART_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// All here is thread-safe, and O(rows).

// A row's name, without its number.
struct RowOrigin {
  int64_t producer = 0;
  int64_t start = 0;
  friend bool operator==(const RowOrigin&, const RowOrigin&) = default;
};

// Rows [first, first + count) of an origin, as a batch [1, count].
absl::StatusOr<TensorDict> MakeRows(const RowOrigin& origin, int64_t first,
                                    int64_t count);

// DATA_LOSS where a row's parts do not belong together.
absl::Status CheckRows(const TensorDict& rows);

// Rows in their order as runs of consecutive numbers of one origin.
absl::Status VisitRuns(
    const TensorDict& rows,
    absl::FunctionRef<void(const RowOrigin&, int64_t first, int64_t last)>
        visit);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_PART_ROWS_H_
