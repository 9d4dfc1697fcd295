// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_SPEC_H_
#define RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_SPEC_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::envs_internal {

// Keys and leaves of steps, for the plan of a TransformedEnv only.

inline bool IsNext(absl::string_view key) {
  return absl::StartsWith(key, "next/");
}

// The leaf of the root that `key` is or becomes.
inline absl::string_view RootOf(absl::string_view key) {
  return IsNext(key) ? key.substr(5) : key;
}

inline bool HasLayout(const LeafSpec& spec, DType dtype, const Shape& shape) {
  return spec.dtype == dtype && spec.shape == shape;
}

// INVALID_ARGUMENT: leaf "key": got ..., want ...
absl::Status StepMisfit(absl::string_view caller, absl::string_view key,
                        absl::string_view got, absl::string_view want);

// The spec of `env` with transforms beside it, which have made its steps to
// `last`. INVALID_ARGUMENT where these are no steps of an Env any more.
absl::StatusOr<EnvSpec> SpecBehindTransforms(
    absl::string_view caller, const EnvSpec& env, const TensorDictSpec& last,
    absl::Span<const LegalActions> legal);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_SPEC_H_
