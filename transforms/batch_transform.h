// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_BATCH_TRANSFORM_H_
#define RILL_TRANSFORMS_BATCH_TRANSFORM_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Changes batches on their way through a replay buffer: Inverse before a
// write, Forward after a read. Each does nothing unless an implementation says
// otherwise. Beside an environment: step_transform.h. A class may be both.
//
// A transform is a pure function of batch and state, and both are the
// caller's. One without state may run in any number of threads at once.
//
// State is a dictionary of tensors. The owner passes a copy that shares the
// tensors, and keeps it if the call succeeds. The transform sets new tensors
// for what it changes and never writes into those that it finds. So a call
// gives the whole new state or leaves the old one, and nothing else is copied.
//
// Errors name the transform. A batch that does not fit, by its keys, dtypes,
// shapes or devices, stays as it is. ForwardSpec and InverseSpec refuse its
// spec, so that a chain that cannot work fails when it is built. An error of
// values or of memory may leave some leaves mapped.
//
// Shapes: any batch shape.
// Thread-safety: immutable. A caller serialises calls that share a state.
// Implementations pass transforms/conformance.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  // "RewardScaling": named in errors and checkpoints.
  virtual absl::string_view name() const = 0;
  // The options that it was made with, for checkpoints to compare. One that
  // does not say is taken to be as it was.
  virtual OptionValues option_values() const { return {}; }

  // True: calls depend on those before them, and are made one at a time, in
  // the order of batches.
  virtual bool is_stateful() const { return false; }
  // The state before the first call; empty where there is none. States keep
  // its keys, dtypes and shapes.
  virtual absl::StatusOr<TensorDict> InitialState() const {
    return TensorDict();
  }

  // After a read; the batch's tensors are its own, and may be changed in place.
  virtual absl::Status Forward(TensorDict* /*batch*/,
                               TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  // Before a write; the tensors' bytes are the writer's, and are not changed.
  virtual absl::Status Inverse(TensorDict* /*batch*/,
                               TensorDict* /*state*/) const {
    return absl::OkStatus();
  }

  // The batch's leaves afterwards, from those before: so a pipeline is checked
  // before the first byte moves.
  virtual absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const {
    return spec;
  }
  virtual absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const {
    return spec;
  }
};

// FAILED_PRECONDITION, naming `owner` and both sides, unless `state` has the
// keys, dtypes and shapes of `initial`: another transform has saved it.
absl::Status CheckTransformState(absl::string_view owner,
                                 const TensorDict& initial,
                                 const TensorDict& state);

}  // namespace rill

#endif  // RILL_TRANSFORMS_BATCH_TRANSFORM_H_
