// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/quick_main.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace rill {

int QuickMain(absl::string_view name, absl::string_view usage, int argc,
              char** argv, absl::FunctionRef<absl::Status(bool is_quick)> run) {
  absl::Status status;
  bool is_quick = false;
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--help") {
      absl::PrintF("%s", usage);
      return 0;
    }
    if (absl::string_view(argv[i]) != "--quick") {
      status.Update(absl::InvalidArgumentError(
          absl::StrFormat("got \"%s\", want --quick or nothing", argv[i])));
      break;
    }
    is_quick = true;
  }
  if (status.ok()) status = run(is_quick);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "%s: %s\n", name, status.ToString());
  return 1;
}

}  // namespace rill
