// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_BUILT_IN_ENV_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_BUILT_IN_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/envs/env.h"

namespace rill::watch_env {

// One lane of a built-in environment by Gymnasium's id, "CartPole-v1". Those of
// MuJoCo are there with --config=mujoco. NOT_FOUND lists the ids there are.
absl::StatusOr<std::unique_ptr<Env>> MakeBuiltInEnv(absl::string_view id,
                                                    uint64_t seed);

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_BUILT_IN_ENV_H_
