// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/phase_times.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {

std::string FormatPhaseTimes(absl::Span<const PhaseTime> phases,
                             double total_seconds) {
  // A run of no time has shares of 0 and not NaN.
  const double total = std::max(total_seconds, 1e-9);
  std::string table =
      absl::StrFormat("%-12s %9s %7s\n", "", "seconds", "share");
  const auto add = [&](absl::string_view name, double seconds) {
    absl::StrAppendFormat(&table, "%-12s %9.2f %5.1f %%\n", name, seconds,
                          100 * seconds / total);
  };
  double accounted = 0;
  for (const PhaseTime& phase : phases) {
    add(phase.name, phase.seconds);
    accounted += phase.seconds;
  }
  add("other", std::max(total_seconds - accounted, 0.0));
  add("total", total_seconds);
  return table;
}

}  // namespace rill
