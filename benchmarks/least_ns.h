// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_LEAST_NS_H_
#define RILL_BENCHMARKS_LEAST_NS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {

// Something that is measured beside others.
struct FramesCase {
  std::string name;
  int64_t frames = 0;  // Of one run.
  std::function<absl::Status()> run;
};

// Measures nanoseconds a frame of each case: the least of `turns` runs, which
// the cases take in turns, so that a busy second of the machine is nobody's
// alone. Prints `title` and a line for each: its name and what `figure` makes
// of its number and of that of the first case. An error names its case.
absl::Status PrintLeast(
    absl::string_view title, absl::Span<const FramesCase> cases, int turns,
    absl::FunctionRef<std::string(double ns, double first)> figure);

// Figures: "     1.234 M frames/s", and the same with how many times as fast as
// the first case it is.
std::string FramesASecond(double ns, double first);
std::string FramesASecondAndRatio(double ns, double first);

}  // namespace rill

#endif  // RILL_BENCHMARKS_LEAST_NS_H_
