// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/transform.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rill {

absl::Status Transform::Forward(TensorDict* /*batch*/) {
  return absl::OkStatus();
}

absl::Status Transform::Inverse(TensorDict* /*batch*/) {
  return absl::OkStatus();
}

absl::Status Transform::OnReset(absl::Span<const uint8_t> /*mask*/,
                                TensorDict* /*root*/) {
  return absl::OkStatus();
}

absl::Status Transform::OnStep(TensorDict* /*step*/) {
  return absl::OkStatus();
}

absl::StatusOr<TensorDictSpec> Transform::ForwardSpec(
    const TensorDictSpec& spec) const {
  return spec;
}

absl::StatusOr<TensorDictSpec> Transform::InverseSpec(
    const TensorDictSpec& spec) const {
  return spec;
}

absl::StatusOr<TensorDictSpec> Transform::StepSpec(
    const TensorDictSpec& spec) const {
  return spec;
}

absl::StatusOr<TensorDict> Transform::SaveState() const { return TensorDict(); }

absl::Status Transform::LoadState(const TensorDict& state) {
  if (state.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name(), "::LoadState: got the keys [", absl::StrJoin(state.Keys(), ", "),
      "], want none: this transform has no state"));
}

}  // namespace rill
