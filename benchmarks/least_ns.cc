// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/least_ns.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

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

}  // namespace

absl::Status PrintLeast(
    absl::string_view title, absl::Span<const FramesCase> cases, int turns,
    absl::FunctionRef<std::string(double ns, double first)> figure) {
  RILL_ASSIGN_OR_RETURN(const std::vector<double> ns,
                        LeastNsAFrame(cases, turns));
  absl::PrintF("%s\n", title);
  for (size_t i = 0; i < cases.size(); ++i) {
    absl::PrintF("  %-44s %s\n", cases[i].name, figure(ns[i], ns[0]));
  }
  return absl::OkStatus();
}

std::string FramesASecond(double ns, double /*first*/) {
  return absl::StrFormat("%10.3f M frames/s", 1000 / ns);
}

std::string FramesASecondAndRatio(double ns, double first) {
  return absl::StrFormat("%s %6.2f", FramesASecond(ns, first), first / ns);
}

}  // namespace rill
