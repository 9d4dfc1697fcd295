// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_DRAW_ENV_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_DRAW_ENV_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tools/programs/watch_env/scene.h"

namespace rill::watch_env {

// Draws a lane of Gymnasium's classic control from its observation alone.
// Thread-safety: thread-safe.

// "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1",
// "Pendulum-v1".
bool CanDraw(absl::string_view env);

// The last stroke is the part that moves: pole, links or rod, from its joint to
// its tip. NOT_FOUND lists what can be drawn; INVALID_ARGUMENT where the
// observation has another number of elements, or one that is not finite.
absl::StatusOr<Scene> DrawEnv(absl::string_view env,
                              absl::Span<const float> observation);

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_DRAW_ENV_H_
