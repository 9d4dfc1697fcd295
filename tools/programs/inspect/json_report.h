// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_JSON_REPORT_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_JSON_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::inspect {

// What was saved as one JSON object without white space;
// docs/formats/inspect.md has every member. Errors are those of reading a
// tensor. Thread-safety: thread-safe.
//
// Example (JsonReportTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::string json,
//                         JsonReport(dict, {.values = true}));
//   // {"batch_shape":[1],"leaves":{"next/reward":{"dtype":"float32",
//   //  "shape":[1,1],"values":[0.5]}}}
struct JsonOptions {
  bool values = false;  // The elements too.
};
absl::StatusOr<std::string> JsonReport(const Saved& saved,
                                       const JsonOptions& options = {});
absl::StatusOr<std::string> JsonReport(const TensorDict& dict,
                                       const JsonOptions& options = {});
absl::StatusOr<std::string> JsonReport(const LazyStack& stack,
                                       const JsonOptions& options = {});

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_JSON_REPORT_H_
