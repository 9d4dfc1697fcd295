// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_NEXT_OBSERVATION_DELTA_H_
#define RILL_TRANSFORMS_EPISODES_NEXT_OBSERVATION_DELTA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Stores next observations as small differences. Before writes
// "next/delta/KEY" becomes next/KEY - KEY, in few bits, and next/KEY goes;
// after reads next/KEY is KEY + the difference. Unlike a NextStateReconstructor
// it is there at the ends of trajectories too. TorchRL's NextObservationDelta.
//
// Lossy: the difference is rounded to `delta_dtype` once. float16 has 11 bits,
// is infinite from 65520 on and holds no steps below 6e-8: normalise first.
//
// Shapes: observations float32 or float64 of any shape, below next of the same
//   dtype and shape.
// Differs from TorchRL: both halves are in the buffer, which so takes steps of
//   any source; TorchRL's writes the differences beside the environment. Keys
//   are named: none is found by itself.
// Thread-safety: immutable, without a state.
// Cost: O(elements).
//
// Example (NextObservationDeltaTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto delta, NextObservationDelta::Create({}));
struct NextObservationDelta {
  struct Options {
    std::vector<std::string> in_keys = {"observation"};
    // float16, bfloat16, float32 or float64.
    DType delta_dtype = DType::kFloat16;
    // After reads the differences go.
    bool drop_delta = true;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_NEXT_OBSERVATION_DELTA_H_
