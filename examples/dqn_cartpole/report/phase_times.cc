// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/report/phase_times.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"

namespace rill::dqn_cartpole {

const char* PhaseName(Phase phase) {
  static constexpr const char* kNames[kNumPhases] = {
      "environment", "policy", "transforms", "write",
      "sample",      "learn",  "evaluate",   "save"};
  return kNames[phase];
}

std::string FormatPhaseTimes(const PhaseTimes& times) {
  const double total = std::max(times.total_seconds, 1e-9);
  std::string table =
      absl::StrFormat("%-12s %9s %7s\n", "", "seconds", "share");
  const auto add = [&](const char* name, double seconds) {
    absl::StrAppendFormat(&table, "%-12s %9.2f %5.1f %%\n", name, seconds,
                          100 * seconds / total);
  };
  double accounted = 0;
  for (int phase = 0; phase < kNumPhases; ++phase) {
    add(PhaseName(static_cast<Phase>(phase)), times.seconds[phase]);
    accounted += times.seconds[phase];
  }
  add("other", std::max(times.total_seconds - accounted, 0.0));
  add("total", times.total_seconds);
  return table;
}

}  // namespace rill::dqn_cartpole
