// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_TERMINATE_H_
#define RILL_TRANSFORMS_ENV_TERMINATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/specs/bound_rows.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Ends episodes beside an environment where a predicate of the user says so:
// next/terminated and next/done of such a lane become true. TorchRL's
// TerminateTransform, lane by lane; done is always set, as an Env promises.
//
// Shapes: leaves of any dtype and shape; the flags bool [lanes, 1].
// Thread-safety: that of the predicate.
//
// Example (TerminateTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto terminate,
//       Terminate::Create({.in_keys = {"next/reward"},
//                          .stop = [](Terminate::Leaves step, int64_t lane) {
//                            return step[0].As<float>()[lane] > 0.5f;
//                          }}));
class Terminate {
 public:
  using Leaves = absl::Span<const BoundLeaf>;

  struct Options {
    // The leaves that the predicate reads, in this order: "next/observation".
    std::vector<std::string> in_keys = {"next/observation"};
    // True if this step ends the lane's episode. Leaves hold rows of all lanes.
    std::function<bool(Leaves step, int64_t lane)> stop = nullptr;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(Options options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ENV_TERMINATE_H_
