// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_STEP_CARRY_H_
#define RILL_ENVS_STEPS_STEP_CARRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/stream.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Copies the leaves below `next` of a step over those of the same key at a
// root: the next step's beginning (StepMdp, with the look-ups done once). The
// reward stays where it is.
//
// Thread-safety: thread-compatible. Holds the leaves' bytes, not the
// dictionaries.
// Device/Stream: contiguous leaves on a device are copied on its default
//   stream, with one wait for all of them, or on a stream of the caller's,
//   without.
// Cost: Run is one copy a leaf where both sides are contiguous.
class StepCarry {
 public:
  StepCarry() = default;

  // Leaves that stand on one side only stay out. INVALID_ARGUMENT names a leaf
  // whose sides differ in dtype or shape, or that cannot be written at the
  // root.
  static absl::StatusOr<StepCarry> Bind(const TensorDict& step,
                                        const TensorDict& root);

  // The errors of Tensor::CopyFrom, which only leaves on a device have. With
  // a stream, of the leaves' device, the copies are enqueued there, and leaves
  // that are not contiguous wait for it.
  absl::Status Run(const Stream* stream = nullptr) const;

 private:
  struct Pair {
    std::string key;  // Without "next/".
    Tensor from;
    Tensor to;
    int64_t plain_bytes = -1;   // Of one copy of bytes; -1: CopyFrom.
    bool is_on_stream = false;  // One copy of bytes on the device.
  };
  static absl::Status Connect(const Tensor& from, Pair* pair);

  std::vector<Pair> pairs_;
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_STEP_CARRY_H_
