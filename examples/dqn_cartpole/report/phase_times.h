// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PHASE_TIMES_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PHASE_TIMES_H_

#include <array>
#include <string>

#include "absl/time/time.h"
#include "rill/base/clock.h"

namespace rill::dqn_cartpole {

// What a run spends its time on.
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
struct PhaseTimes {
  std::array<double, kNumPhases> seconds = {};
  double total_seconds = 0;
};

// "environment", ...
const char* PhaseName(Phase phase);

// A table of phases, seconds and shares of the total, one line each; what no
// phase accounts for is the line "other".
std::string FormatPhaseTimes(const PhaseTimes& times);

// Adds the time of its own life to a phase. Thread-safety: thread-compatible.
class PhaseTimer {
 public:
  PhaseTimer(const Clock& clock, Phase phase, PhaseTimes* times)
      : clock_(clock), phase_(phase), times_(times), start_(clock.Now()) {}
  ~PhaseTimer() {
    times_->seconds[phase_] += absl::ToDoubleSeconds(clock_.Now() - start_);
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  const Clock& clock_;
  Phase phase_;
  PhaseTimes* times_;
  absl::Time start_;
};

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_REPORT_PHASE_TIMES_H_
