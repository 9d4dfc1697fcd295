// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TARGET_NETWORK_H_
#define RILL_LIBTORCH_TARGET_NETWORK_H_

#include "absl/status/status.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace rill {

// Moves the parameters of `target`, which a loss reads and no optimizer
// changes, towards those of `network`: target += tau * (network - target). A
// `tau` of 1 copies. Buffers, as batch norm's statistics, are copied. TorchRL's
// SoftUpdate (its eps is 1 - tau) and HardUpdate.
//
// INVALID_ARGUMENT, nothing changed, where `tau` is not in (0, 1], and where
// the modules are not alike: names the weight, with both sides.
// Autograd: nothing is recorded.
// Thread-safety: none changes the modules meanwhile.
// Device/Stream: by torch's current stream; nothing waits.
// Cost: some us a weight, beside the arithmetic.
//
// Example (TargetNetworkTest.Example runs it):
//   RILL_RETURN_IF_ERROR(UpdateTarget(*net, *target, /*tau=*/0.005));
absl::Status UpdateTarget(const torch::nn::Module& network,
                          torch::nn::Module& target, double tau = 1);

}  // namespace rill

#endif  // RILL_LIBTORCH_TARGET_NETWORK_H_
