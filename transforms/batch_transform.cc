// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/batch_transform.h"

#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"

namespace rill {

absl::Status CheckTransformState(absl::string_view owner,
                                 const TensorDict& initial,
                                 const TensorDict& state) {
  // Without a state there is nothing to load, so the message lists the keys
  // instead of a difference of layouts.
  if (initial.empty()) {
    if (state.empty()) return absl::OkStatus();
    return FailedPrecondition(owner, ": state: got the keys [",
                              absl::StrJoin(state.Keys(), ", "),
                              "], want none: this transform has no state");
  }
  // The specs of two values compare keys, dtypes and shapes. They carry no
  // domains, so values of a state are never refused.
  const std::string difference =
      LayoutDifference(TensorDictSpec::Of(state), TensorDictSpec::Of(initial));
  if (difference.empty()) return absl::OkStatus();
  return FailedPrecondition(owner, ": state: ", difference,
                            "; load what an equal transform has saved");
}

}  // namespace rill
