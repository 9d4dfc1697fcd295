// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_PAD_MEMBERS_H_
#define RILL_TENSORDICT_PAD_MEMBERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::tensor_internal {

// LazyStack::ToPadded of at least one member whose batch shapes, of one rank,
// differ. Thread-safety: thread-safe.
absl::StatusOr<TensorDict> PadMembers(absl::Span<const TensorDict> members,
                                      int stack_dim, double pad_value,
                                      absl::string_view mask_key);

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORDICT_PAD_MEMBERS_H_
