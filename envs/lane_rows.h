// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANE_ROWS_H_
#define RILL_ENVS_LANE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// For those who write an Env: typed access to the leaves of a step. `caller`
// starts the message of an error ("CartPole::Step").

// All elements of the leaf `key`, which must have `shape`, lanes included, and
// may be written in place by the rule of reuse (MayReuse,
// tensordict/bound_rows.h). INVALID_ARGUMENT names key and both sides.
// `prefix` is what stands before `key` in messages: LaneRows<float>(caller,
// *step->FindDict("next"), "reward", shape, "next/").
template <typename T>
absl::StatusOr<absl::Span<T>> LaneRows(absl::string_view caller,
                                       const TensorDict& dict,
                                       absl::string_view key,
                                       const Shape& shape,
                                       absl::string_view prefix = "");

// The flags of a state, one a lane.
struct LaneFlags {
  absl::Span<bool> done;
  absl::Span<bool> terminated;
  absl::Span<bool> truncated;

  void Set(int64_t lane, bool is_terminated, bool is_truncated) const {
    done[lane] = is_terminated || is_truncated;
    terminated[lane] = is_terminated;
    truncated[lane] = is_truncated;
  }
};
absl::StatusOr<LaneFlags> FindLaneFlags(absl::string_view caller,
                                        const TensorDict& dict, int64_t lanes,
                                        absl::string_view prefix = "");

// `step`'s dictionary "next"; INVALID_ARGUMENT where it is missing.
absl::StatusOr<const TensorDict*> FindNext(absl::string_view caller,
                                           const TensorDict& step);

// INVALID_ARGUMENT unless the mask has one entry a lane.
absl::Status CheckLaneMask(absl::string_view caller,
                           absl::Span<const uint8_t> mask, int64_t lanes);

// ---------------------------------------------------------------------------

namespace envs_internal {
absl::Status LaneRowsError(absl::string_view caller, absl::string_view prefix,
                           absl::string_view key, const Tensor* tensor,
                           DType dtype, const Shape& shape);
bool LaneRowsFit(const Tensor* tensor, DType dtype, const Shape& shape);
}  // namespace envs_internal

template <typename T>
absl::StatusOr<absl::Span<T>> LaneRows(absl::string_view caller,
                                       const TensorDict& dict,
                                       absl::string_view key,
                                       const Shape& shape,
                                       absl::string_view prefix) {
  const Tensor* tensor = dict.Find(key);
  if (!envs_internal::LaneRowsFit(tensor, DTypeOf<T>, shape)) {
    return envs_internal::LaneRowsError(caller, prefix, key, tensor, DTypeOf<T>,
                                        shape);
  }
  return absl::MakeSpan(tensor->data<T>(), tensor->num_elements());
}

}  // namespace rill

#endif  // RILL_ENVS_LANE_ROWS_H_
