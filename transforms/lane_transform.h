// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_LANE_TRANSFORM_H_
#define RILL_TRANSFORMS_LANE_TRANSFORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// A BatchTransform whose state holds rows of the storage's lanes, to be written
// later. The buffer says which lanes a batch is of, and when no row may be
// joined to those that follow. MultiStep, and Compose for its members.
//
// Rows of a lane never meet those of another lane, nor those behind a cut or a
// clear. Batches and states are as in BatchTransform.
class LaneTransform : public BatchTransform {
 public:
  // Inverse, where lane 0 of the batch is lane `first_lane` of the storage.
  virtual absl::Status InverseAt(int64_t first_lane, TensorDict* batch,
                                 TensorDict* state) const = 0;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override {
    return InverseAt(0, batch, state);
  }

  // Sink::Cut of lanes [first, first + count), of which there may be fewer
  // here: their trajectories have ended with the rows so far.
  virtual absl::Status CutLanes(int64_t first, int64_t count,
                                TensorDict* state) const = 0;
  // The buffer has forgotten its rows: so does the state.
  virtual absl::Status Clear(TensorDict* state) const {
    RILL_ASSIGN_OR_RETURN(*state, InitialState());
    return absl::OkStatus();
  }
  // Brings a state that an older version has saved to this version's layout.
  // Any other state stays as it is, for CheckTransformState to refuse.
  virtual absl::Status Upgrade(TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_LANE_TRANSFORM_H_
