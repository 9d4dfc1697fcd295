// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_FRAME_SKIP_H_
#define RILL_ENVS_WRAPPERS_FRAME_SKIP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// An environment that repeats each action: a step is `frame_skip` steps of
// `env`, its reward is their sum (in float32, in order), and next is that of
// the last one. A lane whose episode ends on the way stops there: next is its
// true final observation. TorchRL's FrameSkipTransform, which steps on.
//
// Since lanes step together, a lane that has ended is reset and stepped along
// unseen until the others are through. Its next episode is then another one of
// its stream: equal seeds still give equal episodes, whatever other lanes do.
//
// Errors. Where `env` fails on the way, all lanes whose step is not over have
//   failed, as Env::BeginStep says: lanes do not step on without one another.
// Thread-safety: thread-compatible.
// Cost: frame_skip steps, and one copy of the leaves.
//
// Example (FrameSkipTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 16}));
//   RILL_ASSIGN_OR_RETURN(auto env, MakeFrameSkip(std::move(cart_pole),
//                                                 {.frame_skip = 4}));
struct FrameSkipOptions {
  int64_t frame_skip = 1;  // > 0.
};
// INVALID_ARGUMENT names the option; so too where `env` has legal actions and
// frame_skip is more than 1: one that is legal in a frame may not be in the
// next.
absl::StatusOr<std::unique_ptr<Env>> MakeFrameSkip(
    std::unique_ptr<Env> env, const FrameSkipOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_WRAPPERS_FRAME_SKIP_H_
