// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_PHASES_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_PHASES_H_

#include <array>
#include <vector>

#include "rill/telemetry/phase_times.h"

namespace rill::dqn_cartpole {

// The parts of a run that take time.
enum Phase {
  kEnvironment,
  kPolicy,
  kTransforms,  // With the copies from steps into batches.
  kWrite,
  kSample,
  kLearn,
  kEvaluate,
  kSave,
  kNumPhases,
};

// Seconds of each phase, and of the run as a whole. A plain value.
struct Phases {
  std::array<double, kNumPhases> seconds = {};
  double total_seconds = 0;
};

// "environment", ...
inline const char* PhaseName(Phase phase) {
  static constexpr const char* kNames[kNumPhases] = {
      "environment", "policy", "transforms", "write",
      "sample",      "learn",  "evaluate",   "save"};
  return kNames[phase];
}

// With their names, for FormatPhaseTimes.
inline std::vector<PhaseTime> NamedPhases(const Phases& phases) {
  std::vector<PhaseTime> named;
  for (int phase = 0; phase < kNumPhases; ++phase) {
    named.push_back(
        {PhaseName(static_cast<Phase>(phase)), phases.seconds[phase]});
  }
  return named;
}

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_PHASES_H_
