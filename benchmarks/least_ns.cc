// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/least_ns.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"

namespace rill {

absl::StatusOr<std::vector<double>> LeastNsAFrame(
    absl::Span<const FramesCase> cases, int turns) {
  std::vector<double> least(cases.size(),
                            std::numeric_limits<double>::infinity());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const absl::Time begin = Clock::Steady().Now();
      RILL_RETURN_IF_ERROR(cases[i].run()) << cases[i].name;
      const double ns =
          absl::ToDoubleNanoseconds(Clock::Steady().Now() - begin);
      least[i] = std::min(least[i], ns / static_cast<double>(cases[i].frames));
    }
  }
  return least;
}

}  // namespace rill
