// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/episode_counters.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"

namespace rill::envs_internal {
namespace {

// A count below it can be added to without overflow.
constexpr int64_t kMaxCount = int64_t{1} << 62;

}  // namespace

EpisodeCounters::EpisodeCounters(int64_t lanes)
    : steps(lanes), running(lanes), episode(lanes), seed(lanes) {}

void EpisodeCounters::Save(StateWriter* state) const {
  const Shape column({static_cast<int64_t>(steps.size()), 1});
  state->List<int64_t>("steps", steps, column);
  state->List<bool>("running", running, column);
  state->List<int64_t>("episode", episode, column);
  state->List<uint64_t>("seed", seed, column);
}

absl::StatusOr<EpisodeCounters> EpisodeCounters::Load(
    const StateReader& state, int64_t lanes, int64_t max_episode_steps) {
  const Shape column({lanes, 1});
  EpisodeCounters counters(0);
  RILL_ASSIGN_OR_RETURN(counters.steps, state.List<int64_t>("steps", column));
  RILL_ASSIGN_OR_RETURN(counters.running, state.List<bool>("running", column));
  RILL_ASSIGN_OR_RETURN(counters.episode,
                        state.List<int64_t>("episode", column));
  RILL_ASSIGN_OR_RETURN(counters.seed, state.List<uint64_t>("seed", column));
  for (size_t lane = 0; lane < counters.steps.size(); ++lane) {
    const auto check = [&](absl::string_view what, int64_t got, int64_t max) {
      if (got >= 0 && got <= max) return absl::OkStatus();
      return state.DoesNotFit(absl::StrCat(what, " of lane ", lane, ": got ",
                                           got, ", want [0, ", max, "]"));
    };
    const int64_t running = counters.running[lane];
    RILL_RETURN_IF_ERROR(check("running", running, 1));
    RILL_RETURN_IF_ERROR(
        check("steps", counters.steps[lane],
              // A lane that runs is below its limit; one that is done may be at
              // it.
              max_episode_steps > 0 ? max_episode_steps - running : kMaxCount));
    RILL_RETURN_IF_ERROR(check("episode", counters.episode[lane], kMaxCount));
  }
  return counters;
}

}  // namespace rill::envs_internal
