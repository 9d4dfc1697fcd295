// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_OWN_SIMULATOR_H_
#define RILL_DOCS_DOC_EXAMPLES_OWN_SIMULATOR_H_

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
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

// The simulator that docs/environments.md shows.
absl::StatusOr<std::unique_ptr<rill::Env>> MakeBall(int64_t lanes);

#endif  // RILL_DOCS_DOC_EXAMPLES_OWN_SIMULATOR_H_
