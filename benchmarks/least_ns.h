// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_LEAST_NS_H_
#define RILL_BENCHMARKS_LEAST_NS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace rill {

// Something that is measured beside others.
struct FramesCase {
  std::string name;
  int64_t frames = 0;  // Of one run.
  std::function<absl::Status()> run;
};

// Nanoseconds a frame of each case: the least of `turns` runs, which the cases
// take in turns, so that a busy second of the machine is nobody's alone. An
// error names its case.
absl::StatusOr<std::vector<double>> LeastNsAFrame(
    absl::Span<const FramesCase> cases, int turns);

}  // namespace rill

#endif  // RILL_BENCHMARKS_LEAST_NS_H_
