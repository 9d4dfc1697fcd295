// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TRANSFORM_H_
#define RILL_TRANSFORMS_TRANSFORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Changes a batch on its way. One object serves one place: a replay buffer
// calls Inverse before it writes and Forward after it has read; a collector
// calls OnReset and OnStep beside its environment. Each does nothing unless an
// implementation says otherwise.
//
// With an error the batch may be half changed and is to be dropped; the
// transform's own state is as before.
//
// Shapes: Forward and Inverse take any batch shape; OnReset and OnStep [lanes].
// Thread-safety: thread-compatible; transforms without state are immutable.
// Implementations pass transforms/conformance.
class Transform {
 public:
  virtual ~Transform() = default;

  // "RewardScaling": named in errors and checkpoints.
  virtual absl::string_view name() const = 0;
  // The options that it was made with, for checkpoints to compare.
  // One that does not say is taken to be as it was.
  virtual OptionValues option_values() const { return {}; }

  // After a read / before a write.
  virtual absl::Status Forward(TensorDict* batch);
  virtual absl::Status Inverse(TensorDict* batch);

  // Beside an environment. OnReset: `root` after the lanes with mask[lane] != 0
  // were reset; only rows of those lanes may change, and leaves that are new
  // are zero elsewhere. OnStep: a whole step (root, action and "next"). The
  // collector carries leaves of "next" that also stand at the root over to the
  // next root.
  virtual absl::Status OnReset(absl::Span<const uint8_t> mask,
                               TensorDict* root);
  virtual absl::Status OnStep(TensorDict* step);

  // What the batch holds afterwards, from what it holds before: so a pipeline
  // is checked before the first byte moves. StepSpec covers OnReset and OnStep.
  virtual absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const;
  virtual absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const;
  virtual absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const;

  // State for checkpoints, as a copy that later work does not change; empty
  // where there is none. Load refuses, unchanged, what Save of an equal
  // transform did not write.
  virtual absl::StatusOr<TensorDict> SaveState() const;
  virtual absl::Status LoadState(const TensorDict& state);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_TRANSFORM_H_
