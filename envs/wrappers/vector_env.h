// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_VECTOR_ENV_H_
#define RILL_ENVS_WRAPPERS_VECTOR_ENV_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"

namespace rill {

// The substream of the seeds of parts.
inline constexpr uint16_t kVectorEnvSeeds = 3;

// Several environments as one, whose lanes stand one after the other: those of
// parts[0] first. It is Gymnasium's VectorEnv, TorchRL's SerialEnv and
// ParallelEnv. Simulators of one lane each are better off with MakeLaneEnv,
// which copies nothing.
//
// BeginStep begins the steps of all parts before EndStep ends one, so that
// child processes and thread pools of parts work at the same time. Wrappers
// that want to step a lane alone (MakeNoopReset) belong around the parts, not
// around this Env.
//
// Specs: those of all parts are equal but for name and lanes; the name is that
//   of the first. Leaves lie in host memory.
// Seeds: Seed gives parts[p] the seed
//   Rng(seed, RngStream::kEnv, kVectorEnvSeeds).Bits64(p, 0). Until then parts
//   keep the seeds that they were made with. Data are those of the parts alone.
// Errors: name the part, with the number that its lane 0 has here. A simulator
//   that fails leaves the other lanes of its part, and the other parts, as Env
//   says. A part that refuses an action of its spec (a mask of its own) fails
//   all of its lanes.
// State (SaveState): `running` bool [lanes, 1], `parts/<p>`. UNIMPLEMENTED
// where
//   a part has none.
// Thread-safety: thread-compatible. Where threads > 1 parts are called in
//   different threads, and must share nothing that changes.
// Cost: parts own their leaves. So a step copies all leaves of the root into
//   them and those below next back, a reset both ways those of the root, and
//   actions are checked twice.
//
// Example (VectorEnvTest.Example runs it):
//   std::vector<std::unique_ptr<Env>> parts;
//   for (uint64_t seed : {1, 2, 3}) {
//     RILL_ASSIGN_OR_RETURN(parts.emplace_back(),
//                           MakeCartPole({.lanes = 4, .seed = seed}));
//   }
//   RILL_ASSIGN_OR_RETURN(auto env, MakeVectorEnv(std::move(parts)));
struct VectorEnvOptions {
  // >= 1, the caller's among them: for parts that do their work in BeginStep or
  // Reset. A thread that takes a part is busy until the part's step ends.
  int threads = 1;
};
// INVALID_ARGUMENT names what MakeVectorEnv refuses of parts, before it takes
// them.
absl::Status CheckVectorEnvParts(absl::Span<Env* const> parts);
// INVALID_ARGUMENT names the option, or the first leaf in which a part's spec
// differs from that of parts[0], with both sides.
absl::StatusOr<std::unique_ptr<Env>> MakeVectorEnv(
    std::vector<std::unique_ptr<Env>> parts,
    const VectorEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_WRAPPERS_VECTOR_ENV_H_
