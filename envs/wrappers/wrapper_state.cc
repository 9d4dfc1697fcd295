// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/wrapper_state.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::envs_internal {
namespace {

std::string Layout(const Tensor* tensor) {
  return tensor == nullptr ? "none"
                           : absl::StrCat(DTypeName(tensor->dtype()),
                                          tensor->shape().ToString());
}

}  // namespace

absl::Status LoadInner(const StateReader& state, Env* env) {
  RILL_ASSIGN_OR_RETURN(const TensorDict* const inner, state.Dict(kInnerState));
  return env->LoadState(*inner);
}

absl::Status CopyLanesOfState(const Env& env, const std::vector<uint8_t>& mask,
                              const TensorDict& from, TensorDict* to) {
  for (const std::string& key : to->LeafKeys()) {
    const Tensor* const a = from.Find(key);
    const Tensor* const b = to->Find(key);
    if (a != nullptr && a->dtype() == b->dtype() && a->shape() == b->shape()) {
      if (b->rank() > 1 && b->shape()[0] == env.lanes()) {
        for (size_t lane = 0; lane < mask.size(); ++lane) {
          if (mask[lane] == 0) continue;
          const auto i = static_cast<int64_t>(lane);
          RILL_ASSIGN_OR_RETURN(const Tensor row, a->Index(i));
          RILL_ASSIGN_OR_RETURN(const Tensor at, b->Index(i));
          RILL_RETURN_IF_ERROR(at.CopyFrom(row));
        }
        continue;
      }
      // A leaf that is not of lanes has to be the same in both: it cannot be
      // taken for some lanes only.
      RILL_ASSIGN_OR_RETURN(const bool is_equal, a->BitEquals(*b));
      if (is_equal) continue;
    }
    return FailedPrecondition(
        "the state of ", env.name(), ": \"", key, "\": got ", Layout(a),
        " that changes while lanes step, want leaves [", env.lanes(),
        ", n, ...], so that a lane can be stepped alone");
  }
  return absl::OkStatus();
}

}  // namespace rill::envs_internal
