// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_QUICK_MAIN_H_
#define RILL_BENCHMARKS_QUICK_MAIN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill {

// The main of a program of benchmarks/ whose one flag is --quick. It runs `run`
// with whether that was given, and prints `usage` for --help. An error is one
// line that begins with `name`. Returns the exit status.
int QuickMain(absl::string_view name, absl::string_view usage, int argc,
              char** argv, absl::FunctionRef<absl::Status(bool is_quick)> run);

}  // namespace rill

#endif  // RILL_BENCHMARKS_QUICK_MAIN_H_
