// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_ENV_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

// The environment that docs/extending.md shows.
absl::StatusOr<std::unique_ptr<rill::Env>> MakeWalk(int64_t lanes);

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_ENV_H_
